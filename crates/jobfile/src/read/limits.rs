//! Reads resource limits. A limit in the wrong unit is easily written and ends every run, so there are bounds and hints.

use cronhold_schedule::Span;

use super::reader::{JobReader, NamedNode};
use crate::keys::CPU_LEAST;
use crate::size;
use crate::yaml::YamlValue;

/// Most processors of a limit.
const CPUS_MOST: f64 = 1_000_000.0;
/// Kernels count processor time in seconds.
const CPU_TIME_LEAST: Span = Span::from_secs(1);

impl JobReader<'_> {
    /// A size in bytes.
    pub(crate) fn size(&mut self, item: NamedNode<'_>, least: u64) -> Option<u64> {
        let YamlValue::Scalar(scalar) = &item.node.value else {
            return self.wrong(item, "a size in bytes", "512MiB");
        };
        let bytes = self.parsed(item, size::parse(&scalar.text))?;
        if bytes < least {
            let message = format!("`{}` must be at least {}, but is {bytes} bytes", item.name, size::print(least));
            let is_bare = scalar.text.bytes().all(|byte| byte.is_ascii_digit());
            let meant = if is_bare && bytes > 0 { format!("{bytes}MiB") } else { "512MiB".to_owned() };
            return self.refuse(item, message, format!("write for example `{meant}`"));
        }
        Some(bytes)
    }

    /// Processors in thousandths.
    pub(crate) fn processors(&mut self, item: NamedNode<'_>) -> Option<u64> {
        let number = self.number(item, CPU_LEAST)?;
        if number > CPUS_MOST {
            let message = format!("`{}` is {number} processors", item.name);
            return self.refuse(item, message, "1 is one processor, 0.5 half of one");
        }
        // At least ten and at most a thousand million.
        Some((number * 1000.0).round() as u64)
    }

    pub(crate) fn processor_time(&mut self, item: NamedNode<'_>) -> Option<Span> {
        let span = self.span(item)?;
        if span < CPU_TIME_LEAST {
            return self.refuse(item, format!("`{}` must be at least 1s", item.name), "write for example `10m`");
        }
        Some(span)
    }
}
