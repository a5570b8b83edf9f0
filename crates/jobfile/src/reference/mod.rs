//! Documents that are generated from the tables of keys: a JSON Schema for editors and a reference for users.

mod markdown;
mod schema;

#[cfg(test)]
mod tests;

pub use markdown::markdown;
pub use schema::schema;
