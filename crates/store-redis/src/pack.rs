//! A MessagePack writer for arguments that scripts unpack; lists, texts and small numbers suffice. Long texts are
//! separate arguments, because unpacking copies them.

/// Builds a list.
#[derive(Debug, Default)]
pub(crate) struct Pack(Vec<u8>);

impl Pack {
    pub(crate) fn with_capacity(bytes: usize) -> Self {
        Self(Vec::with_capacity(bytes))
    }

    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.0
    }

    /// Starts a list of this many values.
    pub(crate) fn list(&mut self, length: usize) {
        match (u8::try_from(length), u16::try_from(length)) {
            (Ok(length @ 0..=15), _) => self.0.push(0x90 | length),
            (_, Ok(length)) => self.tagged(0xdc, &length.to_be_bytes()),
            _ => self.tagged(0xdd, &size(length)),
        }
    }

    /// Adds a byte string.
    pub(crate) fn text(&mut self, text: impl AsRef<[u8]>) {
        let text = text.as_ref();
        match (u8::try_from(text.len()), u16::try_from(text.len())) {
            (Ok(length @ 0..=31), _) => self.0.push(0xa0 | length),
            (Ok(length), _) => self.tagged(0xd9, &[length]),
            (_, Ok(length)) => self.tagged(0xda, &length.to_be_bytes()),
            _ => self.tagged(0xdb, &size(text.len())),
        }
        self.0.extend_from_slice(text);
    }

    /// Adds a number. Lua represents numbers below 2^53 exactly.
    pub(crate) fn number(&mut self, number: u64) {
        match u8::try_from(number) {
            Ok(number @ 0..=127) => self.0.push(number),
            _ => self.tagged(0xcf, &number.to_be_bytes()),
        }
    }

    fn tagged(&mut self, tag: u8, rest: &[u8]) {
        self.0.push(tag);
        self.0.extend_from_slice(rest);
    }
}

fn size(length: usize) -> [u8; 4] {
    u32::try_from(length).expect("nothing that is committed has four gigabytes").to_be_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_and_numbers_have_the_shortest_form() {
        let packed = |act: &dyn Fn(&mut Pack)| {
            let mut pack = Pack::default();
            act(&mut pack);
            pack.into_bytes()
        };
        assert_eq!(packed(&|pack| pack.list(15)), [0x9f]);
        assert_eq!(packed(&|pack| pack.list(16)), [0xdc, 0, 16]);
        assert_eq!(packed(&|pack| pack.list(65_536)), [0xdd, 0, 1, 0, 0]);
        assert_eq!(packed(&|pack| pack.text("ab")), [0xa2, b'a', b'b']);
        for (length, head) in
            [(31, vec![0xbf]), (32, vec![0xd9, 32]), (256, vec![0xda, 1, 0]), (65_536, vec![0xdb, 0, 1, 0, 0])]
        {
            let text = packed(&|pack| pack.text(vec![7; length]));
            assert_eq!((&text[..head.len()], text.len()), (&head[..], head.len() + length));
        }
        assert_eq!(packed(&|pack| pack.number(127)), [127]);
        assert_eq!(packed(&|pack| pack.number(128)), [0xcf, 0, 0, 0, 0, 0, 0, 0, 128]);
    }
}
