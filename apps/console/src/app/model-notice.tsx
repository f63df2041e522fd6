import type { ReactNode } from "react";
import { Link } from "@tanstack/react-router";
import { useQuery } from "@tanstack/react-query";
import { modelsQuery } from "../api/queries.ts";

/** The model that executes scripts and is no AI. It always exists. */
const SCRIPTED = "scripted";

/** States that no AI model is configured and where to add one; the children state what else to do. */
export const NoModelNotice = ({ children }: { children: ReactNode }): ReactNode => (
  <div className="notice" role="status">
    <p>
      No AI model is configured. <Link to="/secrets">Add a provider key</Link>
      {children} See also <Link to="/models">Models and prices</Link>.
    </p>
  </div>
);

/** Warns before work is dispatched without an AI model. Empty while one is available. */
export function MissingModelNotice(): ReactNode {
  const { data } = useQuery(modelsQuery);
  if (!data || data.models.some(({ id, disabled }) => id !== SCRIPTED && !disabled)) return null;
  return <NoModelNotice>; until then, runs execute only the steps of a script in their prompt.</NoModelNotice>;
}
