import { expect, test } from "@jest/globals";
import { urlKey } from "./url-key.ts";

const KEY = "github.com/acme/shop/pull/7";

test.each([
  "https://github.com/acme/shop/pull/7",
  "http://github.com/acme/shop/pull/7",
  "https://GitHub.com/Acme/Shop/pull/7",
  "https://github.com/acme/shop/pull/7/",
  "https://github.com/acme/shop/pull/7//",
  "https://github.com/acme/shop/pull/7?diff=split",
  "https://github.com/acme/shop/pull/7#discussion_r1",
  "https://github.com/acme/shop/pull/7/?diff=split#a?b",
  " https://github.com/acme/shop/pull/7\n",
  KEY,
])("gives every spelling of a URL one key: %j", (url) => expect(urlKey(url)).toBe(KEY));

test("distinguishes pull requests and hosts", () => {
  const urls = [
    KEY,
    "github.com/acme/shop/pull/70",
    "github.com/acme/shop2/pull/7",
    "git.acme.test/acme/shop/pull/7",
    "git.acme.test:8443/acme/shop/pull/7",
  ];
  expect(new Set(urls.map((url) => urlKey(`https://${url}`))).size).toBe(urls.length);
});

test("returns a key of a key unchanged", () =>
  expect(urlKey(urlKey("HTTPS://Git.Acme.test/a/b/-/merge_requests/3/"))).toBe("git.acme.test/a/b/-/merge_requests/3"));
