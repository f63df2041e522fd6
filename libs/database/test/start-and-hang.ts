// A parent that dies without cleanup: starts the server of the given directory, prints a line and does nothing more.
import { EmbeddedPostgres } from "@millwright/database";

const server = await EmbeddedPostgres.start({ dataDir: process.argv[2] ?? "" });
process.stdout.write(`${server.pid}\n`);
setInterval(() => {}, 1000);
