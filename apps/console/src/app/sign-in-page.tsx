import { useState, type FormEvent, type ReactNode } from "react";
import { useQueryClient } from "@tanstack/react-query";
import { signIn } from "../api/client.ts";
import { adviceFor, ApiError } from "../api/problem.ts";
import icon from "../styles/icon.svg";

/** Asks for an API key and starts a session. The page that was opened is shown afterwards. */
export function SignInPage({ problem }: { problem: ApiError | undefined }): ReactNode {
  const queries = useQueryClient();
  const [error, setError] = useState<ApiError | undefined>(problem);
  const [key, setKey] = useState("");
  const [isBusy, setBusy] = useState(false);
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
              autoFocus
            />
          </label>
          {error !== undefined && (
            <p className="notice bad" role="alert">
              {error.message} {adviceFor(error)}
            </p>
          )}
          <button className="button primary" disabled={isBusy}>
            {isBusy ? "Signing in…" : "Sign in"}
          </button>
        </form>
        <p className="soft small">
          The first start of the platform prints an owner&apos;s key. Owners and admins create keys for others. The key
          is stored in a sealed cookie of this browser for 12 hours.
        </p>
      </main>
    </div>
  );
}
