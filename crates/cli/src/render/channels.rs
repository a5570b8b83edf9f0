//! Channels and their messages.

use std::io::{self, Write};

use cronhold_api::{PublishedMessage, SubscribedChannel};

use super::{CellColour, TextTable, visible};

/// Prints the channels that in ports listen to.
pub(crate) fn table(channels: &[SubscribedChannel], colours: bool, out: &mut dyn Write) -> io::Result<()> {
    if channels.is_empty() {
        return writeln!(out, "no in port listens to a channel");
    }
    let mut table = TextTable::new(&["CHANNEL", "PORTS"]);
    for channel in channels {
        table.row([channel.channel.clone().into(), channel.subscribers.to_string().into()]);
    }
    table.write(colours, out)
}

/// Prints a message on one line, after its channel.
pub(crate) fn message(event: &PublishedMessage, colours: bool, out: &mut dyn Write) -> io::Result<()> {
    let channel = CellColour::Cyan.paint(&visible(&event.channel), colours);
    writeln!(out, "{channel} {}", visible(event.message.as_str()))
}
