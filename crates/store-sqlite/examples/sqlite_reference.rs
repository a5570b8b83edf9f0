//! Prints the document about the tables.

fn main() {
    print!("{}", cronhold_store_sqlite::reference::document());
}
