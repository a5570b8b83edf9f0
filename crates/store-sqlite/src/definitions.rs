//! Lists the definitions of jobs without decoding them.

use cronhold_core::JobId;
use cronhold_core::record::JobSource;
use cronhold_store::{DefinitionPage, JobDefinition, StoredDefinition};
use rusqlite::Row;

use crate::listing::bounded;
use crate::pool::ReadError;
use crate::records::TableReader;
use crate::rows::{CellReader, UnreadableRow};

const SQL: &str = "SELECT id, source, zone, definition FROM jobs WHERE id > ?1 ORDER BY id LIMIT ?2";

impl TableReader<'_> {
    /// Definitions of jobs by id. Rows whose other columns cannot be read are left out.
    pub(crate) fn definitions(&self, after: Option<&JobId>, limit: usize) -> Result<DefinitionPage, ReadError> {
        let mut statement = self.connection.prepare_cached(SQL)?;
        let mut rows = statement.query((after.map_or("", JobId::as_str), bounded(limit)))?;
        let mut page = DefinitionPage::default();
        let (mut count, mut last) = (0, None);
        while let Some(row) = rows.next()? {
            count += 1;
            last = CellReader::new(row).parsed(JobId::parse).ok().or(last);
            page.jobs.extend(read(row).ok());
        }
        page.next = last.filter(|_| count >= limit);
        Ok(page)
    }
}

fn read(row: &Row<'_>) -> Result<JobDefinition, UnreadableRow> {
    let reading = CellReader::new(row);
    let (id, source) = (reading.parsed(JobId::parse)?, reading.parsed(JobSource::parse)?);
    let zone = reading.text()?.into();
    let definition = StoredDefinition::Json(reading.text()?.to_owned());
    Ok(JobDefinition { id, source, zone, definition })
}

#[cfg(test)]
mod tests {
    use crate::listing::testing::{plan, schema};

    #[test]
    fn definitions_are_read_in_the_order_of_the_primary_key() {
        assert_eq!(plan(&schema(), super::SQL), "SEARCH jobs USING PRIMARY KEY (id>?)");
    }
}
