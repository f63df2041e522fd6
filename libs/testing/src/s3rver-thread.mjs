// Runs s3rver in a worker thread, because two global fixes are needed: S3 also quotes !'()* in what is signed, and
// OpenSSL has removed DES, with which s3rver encrypts list continuation tokens.
import crypto from "node:crypto";
import { parentPort, workerData } from "node:worker_threads";

const quote = globalThis.encodeURIComponent;
globalThis.encodeURIComponent = (text) =>
  quote(text).replaceAll(/[!'()*]/g, (letter) => `%${letter.charCodeAt(0).toString(16).toUpperCase()}`);

const encipher = crypto.createCipheriv;
crypto.createCipheriv = (_des, key, iv) => encipher("aes-128-cbc", Buffer.concat([key, key]), Buffer.concat([iv, iv]));

const { default: S3rver } = await import("@20minutes/s3rver");
const { directory, bucket } = workerData;
const { port } = await new S3rver({
  directory,
  address: "127.0.0.1",
  port: 0,
  silent: true,
  vhostBuckets: false,
  configureBuckets: [{ name: bucket }],
}).run();
parentPort.postMessage(port);
