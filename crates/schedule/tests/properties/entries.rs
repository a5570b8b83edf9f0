//! Random lists of numbers in the syntax of a cron field. Each comes as its text and as the set of values it means by
//! the documented rules; nothing here is shared with the parser under test.

use std::collections::BTreeSet;

use crate::dice::Dice;

/// A field's text and what it means.
#[derive(Debug, Clone)]
pub(crate) struct Values {
    pub(crate) text: String,
    pub(crate) values: BTreeSet<u32>,
    /// The text is `*` or `?`.
    pub(crate) free: bool,
    /// The text is `*`, `?` or `*/n`.
    pub(crate) star: bool,
}

/// The values a field can have.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shape {
    pub(crate) min: u32,
    pub(crate) max: u32,
    /// Names of the values from `min` on.
    pub(crate) names: &'static [&'static str],
    /// Whether steps are limited to the length of their range, as in named fields.
    pub(crate) short_steps: bool,
}

impl Shape {
    pub(crate) const fn plain(min: u32, max: u32) -> Self {
        Self { min, max, names: &[], short_steps: false }
    }
}

impl Values {
    /// `*`.
    pub(crate) fn all(shape: Shape) -> Self {
        Self { text: "*".to_owned(), values: (shape.min..=shape.max).collect(), free: true, star: true }
    }

    pub(crate) fn only(value: u32) -> Self {
        Self { text: value.to_string(), values: [value].into(), free: false, star: false }
    }

    /// A list of one to three entries that contains `near` more often than by chance.
    pub(crate) fn random(dice: &mut Dice, shape: Shape, near: u32) -> Self {
        let near = near.clamp(shape.min, shape.max);
        if dice.one_in(4) {
            return Self { text: (if dice.one_in(4) { "?" } else { "*" }).to_owned(), ..Self::all(shape) };
        }
        let mut texts = Vec::new();
        let mut values = BTreeSet::new();
        let entries = *dice.pick(&[1, 1, 1, 2, 3]);
        for _ in 0..entries {
            texts.push(entry(dice, shape, near, &mut values));
        }
        let star = texts.len() == 1 && texts[0].starts_with('*');
        Self { text: texts.join(","), values, free: false, star }
    }
}

fn entry(dice: &mut Dice, shape: Shape, near: u32, values: &mut BTreeSet<u32>) -> String {
    let Shape { min, max, .. } = shape;
    let value = if dice.one_in(3) { dice.number(min, max) } else { near };
    let (first, last) = (dice.number(min, value), dice.number(value, max));
    let step_to = |length: u32| length.clamp(1, 20);
    match dice.number(0, 4) {
        0 | 1 => {
            values.insert(value);
            name(dice, shape, value)
        }
        2 => {
            values.extend(first..=last);
            format!("{}-{}", name(dice, shape, first), name(dice, shape, last))
        }
        3 => {
            let step = dice.number(2, step_to(max - min).max(2));
            values.extend((min..=max).step_by(step as usize));
            format!("*/{step}")
        }
        _ if dice.one_in(2) => {
            let step = dice.number(1, if shape.short_steps { step_to(max - first) } else { step_to(max) });
            values.extend((first..=max).step_by(step as usize));
            format!("{first}/{step}")
        }
        _ => {
            let step = dice.number(1, if shape.short_steps { step_to(last - first) } else { step_to(max) });
            values.extend((first..=last).step_by(step as usize));
            format!("{first}-{last}/{step}")
        }
    }
}

/// A value as its number or one of its names.
pub(crate) fn name(dice: &mut Dice, shape: Shape, value: u32) -> String {
    let Some(name) = shape.names.get((value - shape.min) as usize).filter(|_| dice.one_in(2)) else {
        return if dice.one_in(8) { format!("{value:02}") } else { value.to_string() };
    };
    match dice.number(0, 3) {
        0 => (*name).to_owned(),
        1 => name.to_uppercase(),
        2 => name[..3].to_owned(),
        _ => name[..3].to_lowercase(),
    }
}
