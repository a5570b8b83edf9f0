//! A handle on a store, as the hint board sees it.

use std::future::poll_fn;
use std::sync::Arc;

use cronhold_store::{HandleId, Hint, HintBoard, Pending};

/// The place of a store's handle on its hint board. A clone is another handle with its own queue, and dropping it removes
/// the queue.
#[derive(Debug)]
pub struct BoardHandle {
    board: Arc<HintBoard>,
    id: HandleId,
}

impl BoardHandle {
    /// Adds a handle to a board.
    pub fn join(board: Arc<HintBoard>) -> Self {
        Self { id: board.join(), board }
    }

    pub fn id(&self) -> HandleId {
        self.id
    }

    /// Waits for changes of other handles.
    pub fn hints(&self) -> Pending<'_, Vec<Hint>> {
        Box::pin(poll_fn(|context| self.board.poll(self.id, context.waker())))
    }
}

impl Clone for BoardHandle {
    fn clone(&self) -> Self {
        Self::join(Arc::clone(&self.board))
    }
}

impl Drop for BoardHandle {
    fn drop(&mut self) {
        self.board.leave(self.id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clone_is_another_handle_until_it_is_dropped() {
        let board = Arc::new(HintBoard::default());
        let handle = BoardHandle::join(Arc::clone(&board));
        assert!(!board.has_others(handle.id()));
        let clone = handle.clone();
        assert!(clone.id() != handle.id() && board.has_others(handle.id()));
        drop(clone);
        assert!(!board.has_others(handle.id()));
    }
}
