//! A line between a node and its Redis that can be blocked: nothing is lost and nobody is told. What was sent arrives late,
//! as it does when a network comes back.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;

/// What does not pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Block {
    /// What the node asks, and so what is answered.
    Asked,
    /// What is answered: it has happened, and nobody knows.
    Answered,
}

/// The line. Connections end with either side of them.
pub(crate) struct Wire {
    port: u16,
    gate: Arc<Gate>,
}

#[derive(Default)]
struct Gate {
    block: Mutex<Option<Block>>,
    opened: Condvar,
}

impl Wire {
    /// A line to a port of this machine.
    pub(crate) fn to(server: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("it has one").port();
        let gate = Arc::new(Gate::default());
        let of_all = Arc::clone(&gate);
        // It ends with the test's process.
        thread::spawn(move || {
            for node in listener.incoming().map_while(Result::ok) {
                let _ = connect(node, server, &of_all);
            }
        });
        Self { port, gate }
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// Blocks it, or lets everything pass.
    pub(crate) fn set(&self, block: Option<Block>) {
        *self.gate.block.lock().unwrap_or_else(PoisonError::into_inner) = block;
        self.gate.opened.notify_all();
    }
}

impl Gate {
    /// Waits until what is on its way may pass.
    fn pass(&self, way: Block) {
        let block = self.block.lock().unwrap_or_else(PoisonError::into_inner);
        drop(self.opened.wait_while(block, |block| *block == Some(way)).unwrap_or_else(PoisonError::into_inner));
    }
}

fn connect(node: TcpStream, server: u16, gate: &Arc<Gate>) -> std::io::Result<()> {
    let server = TcpStream::connect(("127.0.0.1", server))?;
    node.set_nodelay(true)?;
    server.set_nodelay(true)?;
    carry(node.try_clone()?, server.try_clone()?, Block::Asked, Arc::clone(gate));
    carry(server, node, Block::Answered, Arc::clone(gate));
    Ok(())
}

/// Carries what comes from one side to the other, until one of them ends.
fn carry(mut from: TcpStream, mut to: TcpStream, way: Block, gate: Arc<Gate>) {
    thread::spawn(move || {
        let mut some = [0; 16 * 1024];
        while let Ok(count @ 1..) = from.read(&mut some) {
            gate.pass(way);
            if to.write_all(&some[..count]).is_err() {
                break;
            }
        }
        // The end of a connection does not pass a blocked line either.
        gate.pass(way);
        let _ = to.shutdown(Shutdown::Both);
        let _ = from.shutdown(Shutdown::Both);
    });
}
