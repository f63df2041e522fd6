// Serves the reference implementation of deliveries on `node:http`, in one process, without authentication, limits and
// events. Reads DELIVERIES_DATABASE_URL and PORT.
import { createServer } from "node:http";
import { DeliveryFloor } from "./deliveries.ts";

const { DELIVERIES_DATABASE_URL = "", PORT = "", CONNECTIONS = "10" } = process.env;
const floor = new DeliveryFloor(DELIVERIES_DATABASE_URL, Number(CONNECTIONS));

createServer((request, response) => {
  const chunks: Buffer[] = [];
  request.on("data", (chunk: Buffer) => void chunks.push(chunk));
  request.on("end", () => {
    const id = String(request.headers["x-service-delivery-id"]);
    const answer = JSON.stringify({ delivery_id: id });
    const isReady = request.method === "GET";
    (isReady ? Promise.resolve() : floor.insert(Buffer.concat(chunks), id)).then(
      () =>
        response
          .writeHead(isReady ? 200 : 202, { "content-type": "application/json", "content-length": answer.length })
          .end(answer),
      () => response.writeHead(500).end(),
    );
  });
}).listen(Number(PORT), "127.0.0.1");

process.once("SIGTERM", () => process.exit(0));
