//! Two tasks that work together: one splits orders into lines, the other adds up what each customer has spent.
//!
//! `cargo run -p cronhold-worker --example orders -- FILE`, where FILE is a database that is created if it does not
//! exist. Run it again: both tasks are still there, and the totals go on. Kill it at any time: nothing is lost or counted
//! twice.

use std::collections::BTreeMap;
use std::error::Error;
use std::sync::Arc;

use cronhold_core::task::{NewTask, TaskAct, TaskAlias, TaskId, TaskKey, TaskTarget, TaskUnit};
use cronhold_schedule::{Instant, ZoneRegistry};
use cronhold_store::tasks::{TaskStore, WindowLimits};
use cronhold_store_sqlite::{Options, SqliteStore};
use cronhold_worker::{StepResult, TaskStep, Worker, WorkerRuntime, block_on};
use serde::{Deserialize, Serialize};

#[derive(Debug, Serialize, Deserialize)]
struct Order {
    customer: String,
    lines: Vec<OrderLine>,
}

#[derive(Debug, Serialize, Deserialize)]
struct OrderLine {
    amount: u32,
    cents: u64,
}

/// Publishes the price of each line of an order.
struct OrderSplitter;

impl Worker for OrderSplitter {
    fn perform(&self, step: &mut TaskStep<'_>) -> StepResult {
        step.for_inputs(&["order"], |step, (order,): (Order,)| {
            for line in &order.lines {
                step.write("price", &(&order.customer, u64::from(line.amount) * line.cents))?;
            }
            Ok(())
        })
    }
}

/// Adds up the prices of each customer.
struct SpendingTotals;

impl Worker for SpendingTotals {
    fn perform(&self, step: &mut TaskStep<'_>) -> StepResult {
        let mut totals: BTreeMap<String, u64> = step.get("totals")?.unwrap_or_default();
        for (customer, cents) in step.read_all::<(String, u64)>("price")? {
            *totals.entry(customer).or_default() += cents;
        }
        step.set("totals", &totals)
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let file = std::env::args().nth(1).ok_or("name the file: cargo run -p cronhold-worker --example orders -- FILE")?;
    let options = Options { clock: Arc::new(wall_clock), zones: Arc::new(ZoneRegistry::bundled()), size_max: None };
    let store: Arc<dyn TaskStore> = Arc::new(SqliteStore::open(file, options)?.tasks());
    let splitter = r#"{"inports":{"order":{}},"outports":{"price":{"channels":["/shop/price"]}}}"#;
    let totals = r#"{"inports":{"price":{"channels":["/shop"]}}}"#;
    let runtime = WorkerRuntime::new(store, "shop")?.with_class("OrderSplitter", splitter, OrderSplitter)?.with_class(
        "SpendingTotals",
        totals,
        SpendingTotals,
    )?;
    runtime.register()?;

    let spending = find_or_create(&runtime, "spending", "SpendingTotals")?;
    let orders = find_or_create(&runtime, "orders", "OrderSplitter")?;
    for (customer, amount) in [("ann", 2), ("bob", 1), ("ann", 3)] {
        let lines = vec![OrderLine { amount, cents: 250 }, OrderLine { amount: 1, cents: 99 }];
        runtime.write(orders, "order", &Order { customer: customer.to_owned(), lines })?;
    }
    // A service calls `runtime.run()`, which makes steps on several threads until it is stopped.
    let steps = runtime.drain(100)?;
    let window = block_on(runtime.store().window(spending, &WindowLimits::STEP))?.ok_or("the task was deleted")?;
    let totals = window.state.iter().find(|(field, _)| field.as_str() == "totals").map(|(_, value)| value.as_str());
    println!("{steps} steps, totals in cents: {}", totals.unwrap_or("none"));
    Ok(())
}

/// The task with this alias. If there is none, it is created together with the alias.
fn find_or_create(runtime: &WorkerRuntime, alias: &str, class: &str) -> Result<TaskId, Box<dyn Error>> {
    let key = TaskKey::Alias(TaskAlias::parse(alias)?);
    if let Some(task) = block_on(runtime.store().find(&key))? {
        return Ok(task.id);
    }
    let new = NewTask::new(runtime.queue().clone(), cronhold_core::task::ClassName::parse(class)?);
    let add = TaskAct::AddAlias { task: TaskTarget::New(0), alias: TaskAlias::parse(alias)? };
    block_on(runtime.store().commit(vec![TaskUnit::request(vec![TaskAct::Create(new), add])])).remove(0)?;
    let created = block_on(runtime.store().find(&key))?.ok_or("the task was deleted")?;
    Ok(created.id)
}

#[expect(clippy::disallowed_methods, reason = "a program takes its time from the system")]
fn wall_clock() -> Instant {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    Instant::from_micros(i64::try_from(since.as_micros()).unwrap_or(i64::MAX))
}
