//! The store on Redis. What Cronken's document describes is kept in its keys, to the letter, so that its clients go on
//! working; our own records stand beside them, below `cronhold:` in the same namespace and the same hash slot.
