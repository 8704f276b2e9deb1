-- Runs on SQLite and PostgreSQL. An empty line ends a statement. Identities are UUIDs; names are folder names for people.
create table team_tenants (
  id text primary key,
  name text not null unique,
  last bigint not null default 0  -- the number of its newest goal or task
)

create table team_users (
  tenant text not null references team_tenants (id), id text not null, name text not null,
  primary key (tenant, id), unique (tenant, name)
)

create table team_agents (
  tenant text not null references team_tenants (id), id text not null, name text not null,
  primary key (tenant, id), unique (tenant, name)
)

create table team_spaces (
  tenant text not null references team_tenants (id), id text not null, name text not null,
  status text not null default 'active' check (status in ('active', 'archived')),
  primary key (tenant, id), unique (tenant, name)
)

create table team_grants (
  tenant text not null, space_id text not null,
  kind text not null check (kind in ('user', 'agent')), holder_id text not null,
  mode text not null check (mode in ('read', 'write')),
  primary key (tenant, space_id, kind, holder_id),
  foreign key (tenant, space_id) references team_spaces (tenant, id)
)

create table team_threads (  -- gate: the newest turn that began to write; revision: of its goals and tasks
  tenant text not null, id text not null, name text not null,
  agent_id text not null, space_id text not null, user_id text not null,
  gate bigint not null default 0, revision bigint not null default 0,
  primary key (tenant, id), unique (tenant, name),
  foreign key (tenant, agent_id) references team_agents (tenant, id),
  foreign key (tenant, space_id) references team_spaces (tenant, id),
  foreign key (tenant, user_id) references team_users (tenant, id)
)

create table team_goals (  -- with its review policy: owner, mode, who accepts, and what a review that waits blocks
  tenant text not null, id text not null, number bigint not null, thread_id text not null,
  title text not null, status text not null check (status in ('open', 'review', 'done', 'dropped')),
  owner_id text not null, accepts_id text not null,
  mode text not null check (mode in ('none', 'task', 'goal')),
  blocks text not null check (blocks in ('nothing', 'goal', 'tasks')),
  who text not null, why text not null,
  primary key (tenant, id), unique (tenant, number),
  foreign key (tenant, thread_id) references team_threads (tenant, id),
  foreign key (tenant, owner_id) references team_users (tenant, id),
  foreign key (tenant, accepts_id) references team_users (tenant, id)
)

create table team_tasks (  -- who and why: of the newest verb
  tenant text not null, id text not null, number bigint not null, goal_id text not null,
  title text not null, status text not null check (status in ('todo', 'doing', 'blocked', 'review', 'done', 'dropped')),
  who text not null, why text not null,
  primary key (tenant, id), unique (tenant, number),
  foreign key (tenant, goal_id) references team_goals (tenant, id)
)

create table team_transitions (  -- what a verb does, by the mode of the goal's review
  kind text not null, mode text not null, verb text not null, begins text not null, ends text not null,
  primary key (kind, mode, verb, begins)
)

insert into team_transitions (kind, mode, verb, begins, ends)
select column1, modes.mode, column2, column3, column4 from (values
  ('task', 'start', 'todo', 'doing'), ('task', 'start', 'blocked', 'doing'),
  ('task', 'block', 'todo', 'blocked'), ('task', 'block', 'doing', 'blocked'),
  ('task', 'drop', 'todo', 'dropped'), ('task', 'drop', 'doing', 'dropped'), ('task', 'drop', 'blocked', 'dropped'),
  ('task', 'drop', 'review', 'dropped'),
  ('task', 'reopen', 'done', 'todo'), ('task', 'reopen', 'dropped', 'todo'),
  ('goal', 'drop', 'open', 'dropped'), ('goal', 'drop', 'review', 'dropped'),
  ('goal', 'reopen', 'done', 'open'), ('goal', 'reopen', 'dropped', 'open')
) as verbs cross join (select 'none' as mode union all select 'task' union all select 'goal') as modes

insert into team_transitions (kind, mode, verb, begins, ends) values
  ('task', 'none', 'done', 'todo', 'done'), ('task', 'none', 'done', 'doing', 'done'),
  ('task', 'goal', 'done', 'todo', 'done'), ('task', 'goal', 'done', 'doing', 'done'),
  ('task', 'task', 'done', 'todo', 'review'), ('task', 'task', 'done', 'doing', 'review'),
  ('task', 'task', 'accept', 'review', 'done'), ('task', 'task', 'reject', 'review', 'doing'),
  ('goal', 'none', 'done', 'open', 'done'), ('goal', 'task', 'done', 'open', 'done'),
  ('goal', 'goal', 'done', 'open', 'review'),
  ('goal', 'goal', 'accept', 'review', 'done'), ('goal', 'goal', 'reject', 'review', 'open')

create table team_finalizes (  -- one for each turn; fence: the turn that may go on with it
  tenant text not null, id text not null, thread_id text not null,
  gate bigint not null, fence bigint not null, manifest text not null,
  status text not null check (status in ('begun', 'files', 'done')), result text not null,
  primary key (tenant, id), unique (tenant, thread_id, gate),
  foreign key (tenant, thread_id) references team_threads (tenant, id)
)

create table team_audit (  -- one for each verb; key: a verb that is sent again with it happens once
  tenant text not null references team_tenants (id), key text not null,
  verb text not null, request text not null, result text not null,
  who text not null, why text not null, at text not null,
  primary key (tenant, key)
)
