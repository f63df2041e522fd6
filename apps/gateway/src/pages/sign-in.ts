import { page } from "./layout.ts";
import { markup } from "./markup.ts";

/** Returns the page that leads from the provider to the page that was opened first. */
export const signedInPage = (next: string): string =>
  page("Signed in", markup`<h1>You are signed in</h1><p><a href="${next}">Continue</a></p>`);

/** Returns the page that states why signing in with the provider has failed. */
export const signInProblemPage = (problem: string, next: string): string =>
  page(
    "Sign in",
    markup`<h1>You are not signed in</h1><p class="problem">${problem}</p>
<p><a href="/session/oidc?again=true&amp;next=${encodeURIComponent(next)}">Sign in again</a> · <a href="${next}">Other ways to sign in</a></p>`,
  );

/** Returns the page of a link that signs a person in once. */
export const linkPage = (name: string): string =>
  page("Sign in", markup`<h1>Sign in as ${name}</h1><form method="post"><button autofocus>Sign in</button></form>`);

/** The page of a link that is used, expired or unknown. */
export const linkProblemPage: string = page(
  "Sign in",
  markup`<h1>You are not signed in</h1><p class="problem">This link was used already, or has expired. It works once, within 30 minutes.</p>
<p><a href="/">Sign in with an API key</a></p>`,
);
