//! Scripts for stores that nodes share: leases, runs that other nodes declared over, and nodes that request again.

use super::check;

#[test]
fn unclaimed_program_is_reported_and_forgotten_later() {
    check(
        "@10 connected
        @10 list 1=running 2=code=0 3=lost
        @10 ready
            store 5 of 2
            store all of 3
            1 launched
            ! unclaimed 1 pid 7
        @10 stored 3
            3 keeperlost
        @11 stored 2
            2 success: nothing to say
        @12 stop 1
            > stop 1 15 60s
        @13 ended 1 signal=15
            store 5 of 1
        @14 stored 1
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
    // The list comes after the node is ready, and comes again.
    check(
        "@10 ready
        @10 connected
        @10 list 1=code=3
            store 5 of 1
        @10 stored 1
            1 failure: exit code 3
        @11 disconnected
        @12 connected
        @12 list 1=code=3
        @70 wait
            > forget 1",
    );
    // Another node declared the run over while its program continues.
    check(
        "@10 connected
        @10 list
        @10 launch 1
            > launch 1 by 20
        @10 started 1
            1 launched
        @10 settled 1
        @11 ended 1 code=0
            store 5 of 1
        @11 stored 1
            1 success: nothing to say
        @71 wait
            > forget 1",
    );
}

#[test]
fn lease_is_sent_with_the_launch_and_extended() {
    check(
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
        @14 disconnected
        @14 extend 1=35
        @14 extend 1=36
        @15 connected
        @15 list 1=running
            > lease 1 36
        @16 ended 1 signal=9!
            store 5 of 1
        @16 extend 1=40
        @16 stored 1
            1 failure: lock lost
        @16 extend 1=41",
    );
    // A program of an earlier daemon, before and after it is found, and one whose launch may be lost.
    check(
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
        @13 disconnected
        @13 extend 2=44
        @14 connected
        @14 list 1=running
            > lease 1 42
            > launch 2 by 22 until 44",
    );
}

#[test]
fn node_that_requests_again_gets_the_last_report_again() {
    check(
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
        @12 stored 1
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
    // A run that turns out not to be over is reported until it is.
    check(
        "@10 ready
        @10 connected
        @10 list 1=lost
            store all of 1
        @10 stored 1
            1 keeperlost
        @10 adopt 1 running
            1 keeperlost
        @99 wait
        @99 settled 1
            > forget 1",
    );
}
