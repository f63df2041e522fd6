import type { Vault } from "@millwright/vault";

/** A cookie whose value only this installation can read and change. */
export type SealedCookie = {
  /** Returns a `Set-Cookie` value. */
  set(text: string, seconds: number): string;
  /** A `Set-Cookie` value that deletes the cookie. */
  readonly clear: string;
  /** Returns the text in a Cookie header, or undefined if it is absent or was not sealed by this installation. */
  readonly read: (cookies: string | undefined) => string | undefined;
};

/**
 * Returns a sealed cookie that scripts cannot read. With https, its name has the prefix `__Host-`, so that no other
 * host of the domain can set it. Browsers send the cookies of a host to all its ports, so a port in the public URL is
 * part of the name. `SameSite=Lax` sends it with navigations from other sites, too.
 */
export function sealedCookie({
  vault,
  name,
  publicUrl,
  sameSite,
}: {
  vault: Vault;
  name: string;
  publicUrl: string;
  sameSite: "Strict" | "Lax";
}): SealedCookie {
  const place = `cookie ${name}`;
  const { protocol, port } = new URL(publicUrl);
  const isHttps = protocol === "https:";
  const fullName = `${isHttps ? "__Host-" : ""}${name}${port && `_${port}`}`;
  const value = new RegExp(`(?:^|; )${fullName}=([^;]+)`);
  const set = (text: string, seconds: number): string =>
    `${fullName}=${text}; Path=/; Max-Age=${seconds}; HttpOnly; SameSite=${sameSite}${isHttps ? "; Secure" : ""}`;
  return {
    set: (text, seconds) => set(vault.seal(text, place), seconds),
    clear: set("", 0),
    read(cookies) {
      const sealed = value.exec(cookies ?? "")?.[1];
      if (sealed === undefined) return undefined;
      try {
        return vault.open(sealed, place);
      } catch {
        return undefined;
      }
    },
  };
}
