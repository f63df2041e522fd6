import { useState, type FormEvent, type ReactNode } from "react";
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { signIn } from "../api/client.ts";
import { adviceFor, ApiError } from "../api/problem.ts";
import { signInOptions } from "../api/queries.ts";
import icon from "../styles/icon.svg";

const PLAIN: Readonly<Record<string, string>> = {
  key_invalid: "This key is unknown, revoked or expired. Check that you copied all of it.",
  session_ended: "The session has ended. Sign in again.",
  cross_site_request: "The platform has another address than this page. Open it at its configured URL.",
};

const explain = (error: ApiError): string =>
  PLAIN[error.problem.reason ?? ""] ?? `${error.message} ${adviceFor(error)}`;

/** Signs in with an API key or with the provider. The page that was opened is shown afterwards. */
export function SignInPage({ problem }: { problem: ApiError | undefined }): ReactNode {
  const queries = useQueryClient();
  const [error, setError] = useState<ApiError | undefined>(problem);
  const [key, setKey] = useState("");
  const [isBusy, setBusy] = useState(false);
  const provider = useQuery(signInOptions).data?.provider;
  const submit = async (event: FormEvent<HTMLFormElement>): Promise<void> => {
    event.preventDefault();
    setBusy(true);
    try {
      await signIn(key.trim());
      await queries.resetQueries();
    } catch (failure) {
      if (!(failure instanceof ApiError)) throw failure;
      setError(failure);
    } finally {
      setBusy(false);
    }
  };
  return (
    <div className="sign-in">
      <main>
        <span className="brand">
          <img src={icon} alt="" />
          Millwright
        </span>
        <h1>Sign in</h1>
        {error !== undefined && (
          <p className="notice bad" role="alert">
            {explain(error)}
          </p>
        )}
        {provider && (
          <>
            <a
              className="button primary"
              href={`${provider.path}?${new URLSearchParams({ next: location.pathname + location.search })}`}
            >
              Continue with {provider.label}
            </a>
            <p className="soft small">or with an API key:</p>
          </>
        )}
        <form onSubmit={(event) => void submit(event)}>
          <label className="field">
            <span>API key</span>
            <input
              className="input mono"
              name="key"
              value={key}
              onChange={(event) => setKey(event.target.value)}
              type="password"
              autoComplete="current-password"
              placeholder="mw_…"
              required
              autoFocus={provider === undefined}
            />
          </label>
          <button className={provider ? "button" : "button primary"} disabled={isBusy}>
            {isBusy ? "Signing in…" : "Sign in"}
          </button>
        </form>
        <p className="soft small">
          The first start of the platform prints a link that signs the owner in once, and the owner&apos;s key. Owners
          add or invite others. The session ends when its key is revoked.
        </p>
      </main>
    </div>
  );
}
