import { useMutation, useQueryClient } from "@tanstack/react-query";
import { api, dataOf } from "../../api/client.ts";
import type { components } from "../../gen/api.ts";
import { useToasts } from "../../ui/toasts.tsx";

type DefinitionFile = components["schemas"]["DefinitionFile"];
type Apply = {
  /** Registered as the source first. */
  readonly files?: DefinitionFile[];
  /** Applies the active version again, which repairs live resources that differ from it. */
  readonly repair?: boolean;
};

/** Returns a mutation that applies a factory's definition. */
export function useApply(uid: string) {
  const queries = useQueryClient();
  const toasts = useToasts();
  const params = { path: { uid } };
  return useMutation({
    mutationFn: async ({ files, repair = false }: Apply) => {
      if (files) await api.PUT("/api/v1/factory/{uid}/source", { params, body: { files } });
      return dataOf(api.POST("/api/v1/factory/{uid}/source/apply", { params, body: { repair } }));
    },
    onSuccess: ({ plan, source }) => {
      if (source.state === "FAILED")
        toasts.failure("The definition was not applied. The Definition tab has its problems.");
      else if (plan.length === 0) toasts.success("Nothing to change.");
      else toasts.success(`Applied ${plan.length} ${plan.length === 1 ? "change" : "changes"}.`);
    },
    onSettled: () => queries.invalidateQueries({ queryKey: ["factories", uid] }),
  });
}
