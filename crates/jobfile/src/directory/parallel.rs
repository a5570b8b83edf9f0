//! Applies a function to many items on a few threads, and returns the results in the order of the items.

use std::num::NonZero;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// More threads than this do not help: the disk and the allocator are shared.
const THREADS_MAX: usize = 8;
/// Items that a thread takes at once.
const CHUNK: usize = 32;

/// `work` of each item, in order.
pub(super) fn map<T: Sync, R: Send>(items: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let chunks: Vec<&[T]> = items.chunks(CHUNK).collect();
    let threads = thread::available_parallelism().map_or(1, NonZero::get).min(THREADS_MAX).min(chunks.len());
    if threads < 2 {
        return items.iter().map(work).collect();
    }
    let next = AtomicUsize::new(0);
    let take = || {
        let mut done: Vec<(usize, Vec<R>)> = Vec::new();
        while let Some((index, chunk)) = {
            let index = next.fetch_add(1, Ordering::Relaxed);
            chunks.get(index).map(|chunk| (index, chunk))
        } {
            done.push((index, chunk.iter().map(&work).collect()));
        }
        done
    };
    let mut done: Vec<(usize, Vec<R>)> = thread::scope(|scope| {
        let others: Vec<_> = (1..threads).map(|_| scope.spawn(take)).collect();
        let own = take();
        let joined = others.into_iter().flat_map(|other| other.join().expect("the work does not panic"));
        own.into_iter().chain(joined).collect()
    });
    done.sort_by_key(|(index, _)| *index);
    done.into_iter().flat_map(|(_, results)| results).collect()
}

#[cfg(test)]
mod tests {
    #[test]
    fn results_keep_the_order_of_the_items() {
        for len in [0, 1, 31, 32, 33, 1000] {
            let items: Vec<usize> = (0..len).collect();
            let expected: Vec<usize> = items.iter().map(|item| item * 2).collect();
            assert_eq!(super::map(&items, |item| item * 2), expected, "{len}");
        }
    }
}
