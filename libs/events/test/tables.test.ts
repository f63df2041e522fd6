import { expect, test } from "@jest/globals";
import { EVENT_TABLES_SQL } from "@millwright/events";
import { missingTables, testDatabase } from "@millwright/testing";

test("a migrated database misses no table, and an empty one misses all of them", async () => {
  const t = await testDatabase();
  expect(await missingTables(t.database.sql, EVENT_TABLES_SQL)).toContain(
    "table stream.event_meta column head bigint not null default 0",
  );
  await t.database.pool.query(EVENT_TABLES_SQL);
  expect(await missingTables(t.database.sql, EVENT_TABLES_SQL)).toEqual([]);
  await t.database.pool.query(
    "ALTER TABLE stream.feed_cursors ALTER stopped_reason SET NOT NULL; DROP INDEX stream.dead_lettered_events_by_entity",
  );
  expect(await missingTables(t.database.sql, EVENT_TABLES_SQL)).toHaveLength(2);
  await t.close();
});
