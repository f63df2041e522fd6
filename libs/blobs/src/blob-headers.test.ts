import { expect, test } from "@jest/globals";
import { blobHeaders } from "./index.ts";

test.each([
  ["image/png", "inline"],
  ["text/plain; charset=utf-8", "inline"],
  ["text/html", "attachment"],
  ["image/svg+xml", "attachment"],
  ["application/javascript", "attachment"],
  ["", "attachment"],
])("%j is served %s", (contentType, disposition) =>
  expect(blobHeaders({ contentType, size: 1 })["Content-Disposition"]).toBe(disposition),
);

test.each([
  ["report.pdf", `filename="report.pdf"; filename*=UTF-8''report.pdf`],
  ["../../etc/passwd", `filename="passwd"; filename*=UTF-8''passwd`],
  ["Übersicht (1).png", `filename="_bersicht (1).png"; filename*=UTF-8''%C3%9Cbersicht%20%281%29.png`],
  [
    'a"; x="b\r\nSet-Cookie: c',
    `filename="a__ x=_b__Set-Cookie: c"; filename*=UTF-8''a%22%3B%20x%3D%22b%0D%0ASet-Cookie%3A%20c`,
  ],
  ["", `filename="download"; filename*=UTF-8''download`],
])("makes the name %j safe in a header", (name, expected) =>
  expect(blobHeaders({ contentType: "application/zip", size: 1 }, name)["Content-Disposition"]).toBe(
    `attachment; ${expected}`,
  ),
);

test("prevents sniffing and scripts in everything that is served", () =>
  expect(blobHeaders({ contentType: "text/html", size: 5 })).toMatchObject({
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": "default-src 'none'; sandbox",
    "Content-Length": "5",
  }));
