import { chmodSync, mkdtempSync, readdirSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "@jest/globals";
import { deriveKey, deriveKeys, loadOrCreateMasterKey, Vault } from "./index.ts";

const oldKey = new Uint8Array(32).fill(1);
const newKey = new Uint8Array(32).fill(2);
const vault = Vault.fromMasterKey(oldKey);
const unreadable = expect.objectContaining({ kind: "internal", reason: "sealed_unreadable" });

describe("a sealed secret", () => {
  test.each(["", "hunter2", "ä€😀".repeat(1000)])("decrypts to the plaintext (%#)", (plain) =>
    expect(vault.open(vault.seal(plain, "secret:1"), "secret:1")).toBe(plain),
  );

  test("may be bytes", () =>
    expect([...vault.openBytes(vault.seal(new Uint8Array([0, 255, 128]), "k"), "k")]).toEqual([0, 255, 128]));

  test("does not show equal plaintexts", () => expect(vault.seal("same", "a")).not.toBe(vault.seal("same", "a")));

  test("does not decrypt in another place", () =>
    expect(() => vault.open(vault.seal("x", "secret:1"), "secret:2")).toThrow(unreadable));

  test("does not decrypt with another master key", () =>
    expect(() => Vault.fromMasterKey(newKey).open(vault.seal("x", "a"), "a")).toThrow(unreadable));

  test("does not decrypt when any part has changed", () => {
    const parts = vault.seal("some text", "a").split(".");
    for (let i = 0; i < parts.length; i++) {
      const changed = parts.map((part, index) =>
        index === i ? (part.startsWith("A") ? "B" : "A") + part.slice(1) : part,
      );
      expect(() => vault.open(changed.join("."), "a")).toThrow(unreadable);
    }
    expect(() => vault.open("", "a")).toThrow(unreadable);
    expect(() => vault.open(`${parts.join(".")}.x`, "a")).toThrow(unreadable);
  });
});

test("rotation: old records stay readable, are rewrapped without their place, and then need the new key only", () => {
  const sealed = vault.seal("hunter2", "secret:1");
  const both = Vault.fromMasterKey(newKey, [oldKey]);
  expect(both.open(sealed, "secret:1")).toBe("hunter2");
  expect(both.isCurrent(sealed)).toBe(false);
  const rewrapped = both.rewrap(sealed);
  expect(both.rewrap(rewrapped)).toBe(rewrapped);
  expect(Vault.fromMasterKey(newKey).open(rewrapped, "secret:1")).toBe("hunter2");
  expect(() => vault.open(rewrapped, "secret:1")).toThrow(unreadable);
});

test("during a rotation both master keys decrypt, sign and verify; the first one encrypts", () => {
  const rotating = { masterKey: newKey, secondaryMasterKey: oldKey };
  const both = Vault.fromMasterKeys(rotating);
  expect(both.open(vault.seal("hunter2", "a"), "a")).toBe("hunter2");
  expect(Vault.fromMasterKey(newKey).open(both.seal("hunter2", "a"), "a")).toBe("hunter2");
  expect(deriveKeys(rotating, "cursors")).toEqual([deriveKey(newKey, "cursors"), deriveKey(oldKey, "cursors")]);
  expect(deriveKeys({ masterKey: newKey }, "cursors")).toEqual([deriveKey(newKey, "cursors")]);
});

test("derived keys differ by purpose and by master key", () => {
  const keys = [deriveKey(oldKey, "cursors"), deriveKey(oldKey, "blobs"), deriveKey(newKey, "cursors")].map((key) =>
    Buffer.from(key).toString("hex"),
  );
  expect(new Set(keys).size).toBe(3);
  expect(keys[0]).toHaveLength(64);
});

describe("the master key file", () => {
  const dir = () => mkdtempSync(join(tmpdir(), "vault-"));

  test("is created once, for its owner only, and leaves no other file", () => {
    const home = join(dir(), "data");
    const path = join(home, "master.key");
    const key = loadOrCreateMasterKey(path);
    expect(loadOrCreateMasterKey(path)).toEqual(key);
    expect(key).toHaveLength(32);
    expect(statSync(path).mode & 0o777).toBe(0o600);
    expect(readdirSync(home)).toEqual(["master.key"]);
  });

  test("is rejected when other users can read it or it contains no key", () => {
    const path = join(dir(), "master.key");
    loadOrCreateMasterKey(path);
    chmodSync(path, 0o644);
    expect(() => loadOrCreateMasterKey(path)).toThrow("owner only");
    chmodSync(path, 0o600);
    writeFileSync(path, "short");
    expect(() => loadOrCreateMasterKey(path)).toThrow("32 bytes");
  });
});
