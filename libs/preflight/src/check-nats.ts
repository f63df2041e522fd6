import { connect } from "nats";
import { addressOf, findingsAt, messageOf, type Finding } from "./finding.ts";

const TIMEOUT_MS = 5_000;

/** Checks that NATS can be reached and has JetStream. Never rejects. */
export async function checkNats(url: string): Promise<Finding[]> {
  const finding = findingsAt(addressOf(url));
  let isConnected = false;
  try {
    const nats = await connect({ servers: url, name: "doctor", reconnect: false, timeout: TIMEOUT_MS });
    isConnected = true;
    try {
      await (await nats.jetstreamManager({ timeout: TIMEOUT_MS })).getAccountInfo();
    } finally {
      await nats.close();
    }
    return [finding("nats")];
  } catch (error) {
    return [
      isConnected
        ? finding("nats", `JetStream does not respond: ${messageOf(error)}`, "Start nats-server with --jetstream.")
        : finding("nats", messageOf(error), "Start the server, and check host, port, credentials and firewall."),
    ];
  }
}
