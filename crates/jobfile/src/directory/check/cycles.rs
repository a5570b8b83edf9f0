//! Finds cycles of `after` conditions: jobs that would wait for each other forever. For each group of jobs that all wait
//! for each other, the shortest cycle through the first of them is reported. Nothing here recurses, so that a chain can
//! have any length.

use std::collections::{BTreeMap, VecDeque};

use super::super::outline::JobLink;
use super::{JobConflict, JobIndex};

/// Most jobs of a cycle that a message lists.
const SHOWN_MAX: usize = 12;

/// One cycle for each group of jobs that wait for each other.
pub(in crate::directory) fn find_cycles(jobs: &JobIndex<'_>) -> Vec<JobConflict> {
    let waits = |number: usize| {
        let links: &[JobLink] = &jobs.jobs[number].1.links;
        links.iter().filter(|link| link.waits).filter_map(|link| Some((jobs.number(&link.job)?, &link.path)))
    };
    let edges: Vec<Vec<usize>> =
        (0..jobs.jobs.len()).map(|number| waits(number).map(|(target, _)| target).collect()).collect();
    let group_of = groups(&edges);
    let mut cycles = Vec::new();
    let mut seen = vec![false; edges.len()];
    for start in 0..edges.len() {
        if std::mem::replace(&mut seen[group_of[start]], true) {
            continue;
        }
        let Some(circle) = shortest_circle(start, &edges, &group_of) else { continue };
        let next = circle.get(1).copied().unwrap_or(start);
        let Some((_, path)) = waits(start).find(|(target, _)| *target == next) else { continue };
        let ids: Vec<&str> = circle.iter().map(|number| &*jobs.jobs[*number].0).collect();
        let message = match &ids[..] {
            [id] => format!("the job waits for itself: {id} → {id}"),
            _ => format!("these jobs wait for each other: {}", shown(&ids)),
        };
        let path = format!("{path}.job");
        cycles.push(JobConflict { number: start, path, message, hint: "remove one of the `after` conditions" });
    }
    cycles
}

fn shown(ids: &[&str]) -> String {
    let mut parts: Vec<String> = ids.iter().take(SHOWN_MAX).map(|id| (*id).to_owned()).collect();
    if ids.len() > SHOWN_MAX {
        parts.push(format!("{} more", ids.len() - SHOWN_MAX));
    }
    parts.extend(ids.first().map(|id| (*id).to_owned()));
    parts.join(" → ")
}

/// The group number of each node. Nodes are in one group if each can be reached from the other (Tarjan's strongly
/// connected components, with an explicit stack instead of recursion).
fn groups(edges: &[Vec<usize>]) -> Vec<usize> {
    const UNSEEN: usize = usize::MAX;
    let mut group_of = vec![UNSEEN; edges.len()];
    let mut order = vec![UNSEEN; edges.len()];
    let mut lowest = vec![UNSEEN; edges.len()];
    let mut open = Vec::new();
    let mut counter = 0;
    let mut group_count = 0;
    for root in 0..edges.len() {
        // Each entry is a node and the number of its edges that have been visited.
        let mut calls = if order[root] == UNSEEN { vec![(root, 0)] } else { Vec::new() };
        while let Some((node, done)) = calls.pop() {
            if done == 0 {
                (order[node], lowest[node]) = (counter, counter);
                counter += 1;
                open.push(node);
            }
            if let Some(target) = edges[node].get(done).copied() {
                calls.push((node, done + 1));
                if order[target] == UNSEEN {
                    calls.push((target, 0));
                } else if group_of[target] == UNSEEN {
                    lowest[node] = lowest[node].min(order[target]);
                }
                continue;
            }
            if lowest[node] == order[node] {
                while let Some(member) = open.pop() {
                    group_of[member] = group_count;
                    if member == node {
                        break;
                    }
                }
                group_count += 1;
            }
            if let Some((parent, _)) = calls.last() {
                lowest[*parent] = lowest[*parent].min(lowest[node]);
            }
        }
    }
    group_of
}

/// The nodes on the shortest path from a node back to itself; `None` if there is no such path.
fn shortest_circle(start: usize, edges: &[Vec<usize>], group_of: &[usize]) -> Option<Vec<usize>> {
    let mut came_from: BTreeMap<usize, usize> = BTreeMap::new();
    let mut queue = VecDeque::from([start]);
    while let Some(node) = queue.pop_front() {
        for target in edges[node].iter().copied().filter(|target| group_of[*target] == group_of[start]) {
            if target == start {
                let back = std::iter::successors(Some(node), |node| came_from.get(node).copied());
                let mut circle: Vec<usize> = back.collect();
                circle.reverse();
                return Some(circle);
            }
            came_from.entry(target).or_insert_with(|| {
                queue.push_back(target);
                node
            });
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn cycles_are_found_in_their_groups() {
        let edges = vec![vec![1], vec![2, 3], vec![0], vec![3], vec![0]];
        let group_of = groups(&edges);
        assert_eq!(group_of[0], group_of[1]);
        assert_eq!(group_of[0], group_of[2]);
        assert!(group_of[3] != group_of[0] && group_of[4] != group_of[0] && group_of[3] != group_of[4]);
        assert_eq!(shortest_circle(0, &edges, &group_of), Some(vec![0, 1, 2]));
        assert_eq!(shortest_circle(3, &edges, &group_of), Some(vec![3]));
        assert_eq!(shortest_circle(4, &edges, &group_of), None);
    }

    #[test]
    fn long_chains_and_cycles_do_not_overflow_the_stack() {
        let len = 200_000;
        let mut edges: Vec<Vec<usize>> = (0..len).map(|node| vec![node + 1]).collect();
        edges.push(Vec::new());
        let group_of = groups(&edges);
        assert_eq!(shortest_circle(0, &edges, &group_of), None);
        edges[len] = vec![0];
        let group_of = groups(&edges);
        assert_eq!(shortest_circle(0, &edges, &group_of).map(|circle| circle.len()), Some(len + 1));
    }

    #[test]
    fn long_cycles_are_shortened_in_the_message() {
        let ids: Vec<String> = (0..20).map(|n| n.to_string()).collect();
        let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
        assert_eq!(shown(&ids[..2]), "0 → 1 → 0");
        assert!(shown(&ids).ends_with(" → 11 → 8 more → 0"));
    }

    proptest! {
        #[test]
        fn nodes_of_a_group_reach_each_other(edges in proptest::collection::vec(proptest::collection::vec(0..8usize, 0..3), 8)) {
            let reach = |from: usize| {
                let (mut seen, mut todo) = ([false; 8], vec![from]);
                while let Some(node) = todo.pop() {
                    todo.extend(edges[node].iter().filter(|target| !std::mem::replace(&mut seen[**target], true)));
                }
                seen
            };
            let reached: Vec<[bool; 8]> = (0..8).map(reach).collect();
            let group_of = groups(&edges);
            for a in 0..8 {
                for b in 0..8 {
                    let together = a == b || reached[a][b] && reached[b][a];
                    prop_assert_eq!(group_of[a] == group_of[b], together, "{} {}", a, b);
                }
                prop_assert_eq!(shortest_circle(a, &edges, &group_of).is_some(), reached[a][a]);
            }
        }
    }
}
