-- Each row is for its tenant alone, also for the owner of the tables. Without a tenant a statement fails; it does not find nothing.
create function team_tenant() returns text language plpgsql stable as $$
declare found text := current_setting('harness.tenant', true);
begin
  if coalesce(found, '') = '' then raise exception 'no tenant is set' using errcode = 'insufficient_privilege'; end if;
  return found;
end $$

do $$
declare name text;
begin
  foreach name in array array['team_users', 'team_agents', 'team_spaces', 'team_grants', 'team_threads', 'team_goals',
    'team_tasks', 'team_finalizes', 'team_audit', 'team_tenants'] loop
    execute format('alter table %I enable row level security', name);
    execute format('alter table %I force row level security', name);
    if name <> 'team_tenants' then
      execute format('create policy tenant on %I using (tenant = team_tenant()) with check (tenant = team_tenant())', name);
    end if;
  end loop;
end $$

-- A tenant is found by its name first, and sees no other one.
create policy tenant on team_tenants using (team_tenant() in (id, name)) with check (team_tenant() in (id, name))
