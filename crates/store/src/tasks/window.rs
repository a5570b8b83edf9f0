//! Windows: the beginning of everything that a task has, within limits. A step works on a window, and requests more
//! where it needs more.

use cronhold_core::task::{
    Channel, ChildName, ClassName, JsonText, PortAddress, PortDirection, PortItem, PortName, StateField, TaskAlias,
    TaskId, TaskKey, TaskRecord, TaskStatus,
};

use serde::{Deserialize, Serialize};

use super::rows::TaskRows;

/// How much of a task a window has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct WindowLimits {
    /// Items of each port. The first item is there unless the window is full.
    pub items: usize,
    /// Bytes of the items of each port.
    pub bytes: usize,
    /// Children.
    pub children: usize,
}

impl WindowLimits {
    /// What a step gets.
    pub const STEP: Self = Self { items: 64, bytes: 64 << 10, children: 64 };
    /// A page of the items of one port.
    pub const ITEMS: Self = Self { items: 10_000, bytes: 1 << 20, children: 0 };
}

/// Bytes of all items of a window together. Ports beyond it come without items, which are read one port at a time.
pub const WINDOW_BYTES_MAX: usize = 8 << 20;

/// The beginning of a task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskWindow {
    pub task: TaskRecord,
    pub aliases: Vec<TaskAlias>,
    pub state: Vec<(StateField, JsonText)>,
    pub inports: Vec<PortWindow>,
    pub outports: Vec<PortWindow>,
    /// Whether ports are created when they are first used.
    pub has_inport_template: bool,
    pub has_outport_template: bool,
    pub children: Vec<ChildWindow>,
}

/// The beginning of a port.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PortWindow {
    pub name: PortName,
    /// All items that the port has.
    pub size: u64,
    /// The position of the first of the items below.
    pub position: u64,
    pub items: Vec<PortItem>,
    pub default: Option<PortItem>,
    pub channels: Vec<Channel>,
}

/// The beginning of a child.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChildWindow {
    pub name: ChildName,
    pub task: TaskId,
    pub class: ClassName,
    pub status: TaskStatus,
    pub outports: Vec<PortWindow>,
}

/// A task by its id or an alias.
pub fn find_task<R: TaskRows>(rows: &mut R, key: &TaskKey) -> Result<Option<TaskRecord>, R::Error> {
    match key {
        TaskKey::Id(id) => rows.task(*id),
        TaskKey::Alias(alias) => match rows.alias(alias)? {
            Some(id) => rows.task(id),
            None => Ok(None),
        },
    }
}

/// Reads the window of a task; `None` if it does not exist.
pub fn read_window<R: TaskRows>(
    rows: &mut R,
    id: TaskId,
    limits: &WindowLimits,
) -> Result<Option<TaskWindow>, R::Error> {
    let Some(task) = rows.task(id)? else { return Ok(None) };
    let mut left = WINDOW_BYTES_MAX;
    let (inports, has_inport_template) = read_ports(rows, id, PortDirection::In, limits, &mut left)?;
    let (outports, has_outport_template) = read_ports(rows, id, PortDirection::Out, limits, &mut left)?;
    let mut children = Vec::new();
    for (name, child) in rows.children(id, None, limits.children)? {
        if let Some(record) = rows.task(child)? {
            let (outports, _) = read_ports(rows, child, PortDirection::Out, limits, &mut left)?;
            children.push(ChildWindow { name, task: child, class: record.class, status: record.status, outports });
        }
    }
    Ok(Some(TaskWindow {
        aliases: rows.aliases(id)?,
        state: rows.state(id)?,
        task,
        inports,
        outports,
        has_inport_template,
        has_outport_template,
        children,
    }))
}

/// Reads items of a port from a position; `None` if the port does not exist.
pub fn read_items<R: TaskRows>(
    rows: &mut R,
    port: &PortAddress,
    from: u64,
    limits: &WindowLimits,
) -> Result<Option<PortWindow>, R::Error> {
    let Some(record) = rows.port(port)? else { return Ok(None) };
    let position = from.clamp(record.first, record.next);
    let items = match record.size() {
        0 => Vec::new(),
        _ => first_items(rows, port, position, limits)?,
    };
    let (name, size) = (port.port.clone(), record.size());
    Ok(Some(PortWindow { name, size, position, items, default: record.default, channels: record.channels }))
}

/// The windows of all ports, and whether there is a template. `left` is how many bytes the whole window can still have.
fn read_ports<R: TaskRows>(
    rows: &mut R,
    task: TaskId,
    direction: PortDirection,
    limits: &WindowLimits,
    left: &mut usize,
) -> Result<(Vec<PortWindow>, bool), R::Error> {
    let (mut windows, mut has_template) = (Vec::new(), false);
    for (name, record) in rows.ports(task, direction)? {
        if name.is_template() {
            has_template = true;
            continue;
        }
        let size = record.size();
        let items = match size {
            0 => Vec::new(),
            _ if *left == 0 => Vec::new(),
            _ => {
                let port = PortAddress { task, direction, port: name.clone() };
                let limits = WindowLimits { bytes: limits.bytes.min(*left), ..*limits };
                first_items(rows, &port, record.first, &limits)?
            }
        };
        let bytes: usize = items.iter().map(|item| item.data.as_str().len() + item.label_bytes()).sum();
        *left = left.saturating_sub(bytes);
        let (default, channels) = (record.default, record.channels);
        windows.push(PortWindow { name, size, position: record.first, items, default, channels });
    }
    Ok((windows, has_template))
}

/// Items whose number and size are within the limits, but at least one if there is one.
fn first_items<R: TaskRows>(
    rows: &mut R,
    port: &PortAddress,
    from: u64,
    limits: &WindowLimits,
) -> Result<Vec<PortItem>, R::Error> {
    let mut items = rows.items(port, from, limits.items.max(1), limits.bytes)?;
    let mut bytes = 0;
    let within = items.iter().take_while(|item| {
        bytes += item.data.as_str().len();
        bytes <= limits.bytes
    });
    let count = within.count().max(1);
    items.truncate(count);
    Ok(items)
}
