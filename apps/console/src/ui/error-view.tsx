import type { ReactNode } from "react";
import { adviceFor, ApiError } from "../api/problem.ts";
import { Button } from "./button.tsx";
import { CopyButton } from "./copy.tsx";

/** Shows a failed request: what is wrong, what to do, and the request id. */
export function ErrorView({ error, onRetry }: { error: unknown; onRetry?: () => void }): ReactNode {
  const isApi = error instanceof ApiError;
  const advice = adviceFor(error);
  return (
    <section className="notice bad" role="alert">
      <h2>{isApi ? (error.problem.title ?? "The platform did not respond") : "The page failed"}</h2>
      <p>{error instanceof Error ? error.message : String(error)}</p>
      {advice !== undefined && <p className="soft">{advice}</p>}
      {isApi && (
        <p className="soft small">
          {error.request}
          {error.status > 0 && ` · ${error.status} ${error.problem.reason ?? ""}`}
          {error.requestId !== undefined && (
            <>
              {" · request "}
              <span className="id">
                {error.requestId} <CopyButton text={error.requestId} label="request id" />
              </span>
            </>
          )}
        </p>
      )}
      {onRetry && (
        <div>
          <Button isSmall onClick={onRetry}>
            Try again
          </Button>
        </div>
      )}
    </section>
  );
}
