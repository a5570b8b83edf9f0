//! Prints the reference of the tables, for the committed copy in docs/reference.

fn main() {
    print!("{}", cronhold_store_sqlite::reference::document());
}
