import { expect, test } from "@jest/globals";
import { Vault } from "@millwright/vault";
import { sealedCookie } from "./sealed-cookie.ts";

const vault = Vault.fromMasterKey(new Uint8Array(32).fill(1));
const cookieAt = (publicUrl: string) =>
  sealedCookie({ vault, name: "millwright_session", publicUrl, sameSite: "Strict" });

test.each([
  ["https://mill.example", "__Host-millwright_session", "; Secure"],
  ["https://mill.example:443", "__Host-millwright_session", "; Secure"],
  ["https://mill.example:8443/", "__Host-millwright_session_8443", "; Secure"],
  ["http://mill.example", "millwright_session", ""],
  ["http://127.0.0.1:8080", "millwright_session_8080", ""],
])("at %s the cookie is named %s", (publicUrl, name, secure) => {
  const cookie = cookieAt(publicUrl);
  expect(cookie.clear).toBe(`${name}=; Path=/; Max-Age=0; HttpOnly; SameSite=Strict${secure}`);
  expect(cookie.read(`other=1; ${cookie.set("token", 60).split(";")[0]}; last=2`)).toBe("token");
});

test("two platforms on one host read only their own cookies", () => {
  const [first, second] = [cookieAt("http://127.0.0.1:8080"), cookieAt("http://127.0.0.1:8081")];
  const [a, b] = [first, second].map((cookie, n) => cookie.set(`token ${n}`, 60).split(";")[0]);
  for (const header of [`${a}; ${b}`, `${b}; ${a}`])
    expect([first.read(header), second.read(header)]).toEqual(["token 0", "token 1"]);
  expect(second.read(a)).toBeUndefined();
});
