//! What comes of a store that nodes share: leases, runs that others have declared over, and nodes that ask again.

use super::play;

#[test]
fn programs_that_nobody_wants() {
    play(
        "@10 connected
        @10 list 1=running 2=code=0 3=lost
        @10 ready
            store 5 of 2
            store all of 3
            1 launched
            ! the keeper runs a program (pid 7) of run 1, which is over or unknown; it goes on unless it has to be alone
        @10 written 3
            3 keeperlost
        @11 written 2
            2 success: nothing to say
        @12 stop 1
            > stop 1 15 60s
        @13 ended 1 signal=15
            store 5 of 1
        @14 written 1
            1 failure: signal SIGTERM
        @15 settled 1
            > forget 1
        @69 wait
        @70 wait
            > forget 3
        @71 wait
            > forget 2
        @99 wait",
    );
    // A list that comes when the node is ready already, and comes again.
    play(
        "@10 ready
        @10 connected
        @10 list 1=code=3
            store 5 of 1
        @10 written 1
            1 failure: exit code 3
        @11 away
        @12 connected
        @12 list 1=code=3
        @70 wait
            > forget 1",
    );
    // A run that someone has declared over while its program goes on.
    play(
        "@10 connected
        @10 list
        @10 launch 1
            > launch 1 by 20
        @10 started 1
            1 launched
        @10 settled 1
        @11 ended 1 code=0
            store 5 of 1
        @11 written 1
            1 success: nothing to say
        @71 wait
            > forget 1",
    );
}

#[test]
fn leases_go_with_launches_and_are_extended() {
    play(
        "@10 launch 1 30
        @10 extend 1=31 2=31
        @10 connected
        @10 list
            > launch 1 by 20 until 31
        @11 extend 1=33
            > lease 1 33
        @11 started 1
            1 launched
        @12 extend 1=32
        @12 extend 1=33
        @13 extend 1=34
            > lease 1 34
        @14 away
        @14 extend 1=35
        @14 extend 1=36
        @15 connected
        @15 list 1=running
            > lease 1 36
        @16 ended 1 signal=9!
            store 5 of 1
        @16 extend 1=40
        @16 written 1
            1 failure: lock lost
        @16 extend 1=41",
    );
    // One of an earlier life, before and after it is found, and one whose launch may be lost.
    play(
        "@10 adopt 1 running
        @10 extend 1=40
        @11 connected
        @11 list 1=running
            > lease 1 40
            1 launched
        @12 extend 1=42
            > lease 1 42
        @12 launch 2 40
            > launch 2 by 22 until 40
        @13 away
        @13 extend 2=44
        @14 connected
        @14 list 1=running
            > lease 1 42
            > launch 2 by 22 until 44",
    );
}

#[test]
fn a_node_that_asks_again_hears_it_again() {
    play(
        "@10 connected
        @10 list 1=running
        @10 launch 2
            > launch 2 by 20
        @10 adopt 2 starting
        @10 adopt 1 running
            1 launched
        @10 adopt 1 running
        @10 adopt 1 starting
            1 launched
        @11 ended 1 code=1
            store 5 of 1
        @11 adopt 1 running
        @12 written 1
            1 failure: exit code 1
        @13 adopt 1 running
            1 failure: exit code 1
        @14 settled 1
            > forget 1
        @15 refused 2
            2 not launched: no such file
        @15 adopt 2 starting
            2 not launched: no such file
        @16 adopt 3 running
            3 lost
        @16 adopt 3 running
            3 lost",
    );
    // A run that is found not to be over is told of until it is.
    play(
        "@10 ready
        @10 connected
        @10 list 1=lost
            store all of 1
        @10 written 1
            1 keeperlost
        @10 adopt 1 running
            1 keeperlost
        @99 wait
        @99 settled 1
            > forget 1",
    );
}
