import type { ReactNode } from "react";
import { useQuery } from "@tanstack/react-query";
import { factoriesQuery } from "../api/queries.ts";
import { ChoiceFilter } from "../ui/filters.tsx";
import { withChosen } from "../ui/select-field.tsx";

/** A filter with one of the team's factories. A factory that is not listed is shown by its uid. */
export function FactoryFilter({
  value,
  onChange,
}: {
  value: string | undefined;
  onChange: (uid: string | undefined) => void;
}): ReactNode {
  const { data } = useQuery(factoriesQuery);
  const choices = (data?.factories ?? []).map(({ uid, name }) => ({ value: uid, label: name }));
  return <ChoiceFilter label="Factory" value={value} choices={withChosen(choices, value)} onChange={onChange} />;
}
