//! Changes who is whose child, and deletes tasks.

use cronhold_core::task::limits::{ALIASES_MAX, TREE_DEPTH_MAX};
use cronhold_core::task::log::deleted_message;
use cronhold_core::task::{
    ActOutcome, Channel, ChildName, ChildTarget, PortAddress, PortDirection, TaskAlias, TaskId, TaskRecord,
    TaskRefusal, TaskStatus,
};

use super::super::rows::TaskRows;
use super::UnitExecutor;
use super::publish::OutgoingMessage;

impl<R: TaskRows> UnitExecutor<'_, R> {
    /// Makes a task without a parent the child of another.
    pub(super) fn adopt(&mut self, parent: TaskId, mut child: TaskRecord, name: &ChildName) -> Result<(), R::Error> {
        self.task(parent)?;
        if let Some((other, _)) = child.parent {
            return Err(TaskRefusal::HasParent { child: child.id, parent: other }.into());
        }
        if self.rows.child(parent, name)?.is_some() {
            return Err(TaskRefusal::ChildNameTaken { parent, name: name.clone() }.into());
        }
        let (mut above, mut depth) = (Some(parent), 1);
        while let Some(id) = above {
            if id == child.id {
                return Err(TaskRefusal::TreeCycle { parent, child: child.id }.into());
            }
            depth += 1;
            if depth > TREE_DEPTH_MAX {
                let (what, limit) = ("levels of a tree of tasks", TREE_DEPTH_MAX);
                return Err(TaskRefusal::TooLarge { what, found: depth, limit }.into());
            }
            above = self.task(id)?.parent.map(|(above, _)| above);
        }
        child.parent = Some((parent, name.clone()));
        self.rows.put_task(&child)
    }

    /// Takes a child from its parent.
    pub(super) fn disown(&mut self, parent: TaskId, child: &ChildTarget) -> Result<(), R::Error> {
        self.task(parent)?;
        let found = match child {
            ChildTarget::Name(name) => self.rows.child(parent, name)?,
            ChildTarget::Task(target) => Some(self.target(*target)?),
        };
        let record = found.map(|id| self.rows.task(id)).transpose()?.flatten();
        let is_child = |record: &TaskRecord| record.parent.as_ref().is_some_and(|(above, _)| *above == parent);
        match record.filter(is_child) {
            Some(record) => self.rows.put_task(&TaskRecord { parent: None, ..record }),
            None => Err(TaskRefusal::UnknownChild(parent).into()),
        }
    }

    pub(super) fn add_alias(&mut self, task: TaskId, alias: &TaskAlias) -> Result<(), R::Error> {
        self.task(task)?;
        match self.rows.alias(alias)? {
            Some(owner) if owner != task => Err(TaskRefusal::AliasTaken { alias: alias.clone(), task: owner }.into()),
            Some(_) => Ok(()),
            None => {
                let found = self.rows.aliases(task)?.len() + 1;
                if found > ALIASES_MAX {
                    return Err(TaskRefusal::TooLarge { what: "aliases of a task", found, limit: ALIASES_MAX }.into());
                }
                self.rows.put_alias(alias, task)
            }
        }
    }

    pub(super) fn remove_alias(&mut self, task: TaskId, alias: &TaskAlias) -> Result<(), R::Error> {
        self.task(task)?;
        match self.rows.alias(alias)? == Some(task) {
            true => self.rows.delete_alias(alias),
            false => Err(TaskRefusal::UnknownAlias { alias: alias.clone(), task }.into()),
        }
    }

    /// Deletes a task and its descendants if all of them are terminated.
    pub(super) fn delete(&mut self, task: &TaskRecord) -> Result<ActOutcome, R::Error> {
        let mut tree = vec![task.id];
        tree.extend(self.descendants(task.id)?);
        for id in &tree {
            if self.task(*id)?.status != TaskStatus::Terminated {
                return Ok(ActOutcome::Deleted(false));
            }
        }
        for id in tree {
            self.delete_rows(id)?;
            self.outbox.push_back(OutgoingMessage::new(Channel::of_task(id), deleted_message()));
        }
        Ok(ActOutcome::Deleted(true))
    }

    fn delete_rows(&mut self, id: TaskId) -> Result<(), R::Error> {
        for alias in self.rows.aliases(id)? {
            self.rows.delete_alias(&alias)?;
        }
        for (field, _) in self.rows.state(id)? {
            self.rows.delete_state(id, &field)?;
        }
        for direction in [PortDirection::In, PortDirection::Out] {
            for (port, record) in self.rows.ports(id, direction)? {
                let address = PortAddress { task: id, direction, port };
                self.rows.delete_items(&address, record.first, record.next)?;
                self.rows.delete_port(&address)?;
            }
        }
        self.rows.delete_task(id)
    }
}
