/**
 * Control sequences of terminals (ECMA-48): CSI, then the strings OSC, DCS, SOS, PM and APC up to their end, then every
 * other escape. Each begins with ESC or with its one-character form (C1). A string without an end extends to the end of
 * the line, so that it hides no further one.
 */
const SEQUENCES =
  // oxlint-disable-next-line no-control-regex -- these are what is removed
  /(?:\u001b\[|\u009b)[\u0030-\u003f]*[\u0020-\u002f]*[\u0040-\u007e]?|(?:\u001b[PX\]^_]|[\u0090\u0098\u009d\u009e\u009f])[^\u0007\u001b\u009c\n]*(?:\u0007|\u001b\\|\u009c)?|\u001b[\u0020-\u002f]*[\u0030-\u007e]?/g;
/**
 * C0 except tab and line feed, DEL, C1; marks, embeddings, overrides and isolates of writing direction; line and
 * paragraph separators.
 */
// oxlint-disable-next-line no-control-regex -- these are what is removed
const CONTROLS = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g;

/**
 * Returns untrusted text in printable form: without control sequences, control characters and bidirectional controls.
 */
export const printable = (text: string): string => text.replace(SEQUENCES, "").replace(CONTROLS, "");

/** Returns JSON, or JSON Lines, with the same value and with those characters escaped. */
export const printableJson = (json: string): string =>
  json
    .replaceAll("\r\n", "\n")
    .replace(CONTROLS, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`);
