-- additive
-- How many links of a purpose were sent to a person after an instant. While they are fewer than the limit, the person is locked
-- until the transaction ends, and the links are counted behind the lock: parallel requests pass the limit by none, and those
-- of a flood over it wait for nobody.
create function count_recent_links(holder uuid, asked text, since timestamptz, at_most integer) returns integer
language plpgsql volatile as $$
declare
  recent integer;
begin
  for turn in 1..2 loop
    select count(*)::int into recent from proof_token t
      where t."user" = holder and t.purpose = asked and t.created_at > since;
    exit when turn = 2 or recent >= at_most;
    perform from "user" u where u.document_id = holder for no key update;
  end loop;
  return recent;
end $$;
