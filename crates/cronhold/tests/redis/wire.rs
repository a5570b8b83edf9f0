//! A proxy between a node and its Redis that can be blocked. Blocked data is neither lost nor reported; it arrives
//! late, as after a network failure.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;

use cronhold_store::lock_mutex;

/// The direction that is blocked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Block {
    /// Requests of the node, and so also the replies.
    Requests,
    /// Replies of Redis: the request takes effect, and the node does not know it.
    Replies,
}

/// The proxy. When one side closes a connection, the proxy closes the other side.
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
    /// A proxy to a port of this machine.
    pub(crate) fn to(server: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("it has one").port();
        let gate = Arc::new(Gate::default());
        let of_all = Arc::clone(&gate);
        // The thread ends with the process.
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

    /// Blocks a direction, or unblocks all.
    pub(crate) fn set(&self, block: Option<Block>) {
        *lock_mutex(&self.gate.block) = block;
        self.gate.opened.notify_all();
    }
}

impl Gate {
    /// Waits until this direction is not blocked.
    fn pass(&self, way: Block) {
        let block = lock_mutex(&self.block);
        drop(self.opened.wait_while(block, |block| *block == Some(way)).unwrap_or_else(PoisonError::into_inner));
    }
}

fn connect(node: TcpStream, server: u16, gate: &Arc<Gate>) -> std::io::Result<()> {
    let server = TcpStream::connect(("127.0.0.1", server))?;
    node.set_nodelay(true)?;
    server.set_nodelay(true)?;
    carry(node.try_clone()?, server.try_clone()?, Block::Requests, Arc::clone(gate));
    carry(server, node, Block::Replies, Arc::clone(gate));
    Ok(())
}

/// Forwards data from one side to the other until either is closed.
fn carry(mut from: TcpStream, mut to: TcpStream, way: Block, gate: Arc<Gate>) {
    thread::spawn(move || {
        let mut some = [0; 16 * 1024];
        while let Ok(count @ 1..) = from.read(&mut some) {
            gate.pass(way);
            if to.write_all(&some[..count]).is_err() {
                break;
            }
        }
        // The end of a connection is blocked too.
        gate.pass(way);
        let _ = to.shutdown(Shutdown::Both);
        let _ = from.shutdown(Shutdown::Both);
    });
}
