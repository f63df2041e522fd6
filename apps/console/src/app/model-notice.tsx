import type { ReactNode } from "react";
import { Link } from "@tanstack/react-router";
import { useQuery } from "@tanstack/react-query";
import { modelsQuery } from "../api/queries.ts";

/** The model that executes scripts and is no AI. It always exists. */
const SCRIPTED = "scripted";

/** Where an AI model is added, and which models there are. */
export const ModelLinks = (): ReactNode => (
  <p>
    <Link to="/secrets">Add a provider key</Link> · <Link to="/models">Models and prices</Link>
  </p>
);

/** Warns before work is dispatched without an AI model. Empty while one is available. Children are further actions. */
export function MissingModelNotice({ children }: { children?: ReactNode }): ReactNode {
  const { data } = useQuery(modelsQuery);
  if (!data || data.models.some(({ id, disabled }) => id !== SCRIPTED && !disabled)) return null;
  return (
    <div className="notice" role="status">
      <p>No AI model is configured. Without one, runs execute only the steps of a script in their prompt.</p>
      <ModelLinks />
      {children}
    </div>
  );
}
