// A parent that dies without a farewell: starts the server of the directory given, says so and does nothing more.
import { EmbeddedPostgres } from "@millwright/database";

const server = await EmbeddedPostgres.start({ dataDir: process.argv[2] ?? "" });
process.stdout.write(`${server.pid}\n`);
setInterval(() => {}, 1000);
