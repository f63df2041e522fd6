import { execFileSync } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

export type Certificate = { readonly cert: string; readonly key: string };

/** A private certificate authority in a directory. Needs openssl. */
export class CertificateAuthority {
  readonly #directory: string;
  #count = 0;

  constructor(directory: string) {
    this.#directory = directory;
    mkdirSync(directory, { recursive: true });
    this.#openssl(
      "req",
      "-x509",
      ...NEW_KEY,
      "-keyout",
      "ca.key",
      "-out",
      "ca.crt",
      "-subj",
      "/CN=Authority",
      "-days",
      "1",
    );
  }

  /** The path of the authority's certificate. */
  get file(): string {
    return join(this.#directory, "ca.crt");
  }

  get pem(): string {
    return readFileSync(this.file, "utf8");
  }

  /** Returns a certificate for DNS names. */
  issue(names: readonly string[]): Certificate {
    const name = `leaf-${++this.#count}`;
    writeFileSync(join(this.#directory, "ext"), `subjectAltName=${names.map((one) => `DNS:${one}`).join(",")}\n`);
    this.#openssl("req", ...NEW_KEY, "-keyout", `${name}.key`, "-out", `${name}.csr`, "-subj", "/CN=leaf");
    const issuer = ["-CA", "ca.crt", "-CAkey", "ca.key", "-CAcreateserial", "-extfile", "ext", "-days", "1"];
    this.#openssl("x509", "-req", "-in", `${name}.csr`, "-out", `${name}.crt`, ...issuer);
    const read = (suffix: string): string => readFileSync(join(this.#directory, `${name}.${suffix}`), "utf8");
    return { cert: read("crt"), key: read("key") };
  }

  #openssl(...args: string[]): void {
    execFileSync("openssl", args, { cwd: this.#directory, stdio: ["ignore", "ignore", "pipe"] });
  }
}

const NEW_KEY = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"];
