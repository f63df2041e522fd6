import { expect, test } from "@jest/globals";
import { secretsOf } from "./host-git.ts";

const basic = (text: string): string => Buffer.from(text).toString("base64");

test.each([
  ["", [""]],
  ["Bearer t0ken", ["t0ken"]],
  [`Basic ${basic("x-access-token:t0:ken")}`, [basic("x-access-token:t0:ken"), "t0:ken"]],
  [`Authorization: basic ${basic("user:t0ken")}`, [basic("user:t0ken"), "t0ken"]],
  [`Basic ${basic("no password")}`, [basic("no password"), ""]],
])("masked parts of %j", (header, secrets) => expect(secretsOf(header)).toEqual(secrets));
