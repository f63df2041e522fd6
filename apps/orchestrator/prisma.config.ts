import { defineConfig } from "prisma/config";

/** Read by the Prisma command line only; the running service applies migrations with our own runner (libs/database). */
export default defineConfig({
  schema: "prisma/schema.prisma",
  migrations: { path: "prisma/migrations" },
  datasource: { url: process.env["DATABASE_URL"] ?? "postgresql://unused" },
  // The life cycle of runs is hand-written SQL; its migration says what each table means. Prisma neither reads nor changes them.
  experimental: { externalTables: true },
  tables: {
    external: [
      "public.runs",
      "public.run_texts",
      "public.lanes",
      "public.capacity",
      "public.executions",
      "public.leases",
      "public.run_streams",
      "public.messages",
      "public.message_attachments",
      "public.prepared_attachments",
      "public.execution_directives",
      "public.waits",
      "public.reported_children",
      "public.worker_sessions",
      "public.idempotency_keys",
      "public.reaper_ticks",
      "public.closed_factories",
      "public.block_snapshots",
    ],
  },
});
