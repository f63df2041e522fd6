import * as v from "valibot";
import { searchChoice, searchText } from "../../ui/search-params.ts";

/** The filters, order and place of the list of artifacts, as in the URL. All but the type are filters of their runs. */
export const artifactsSearch = v.object({
  /** Default: `FILE`. */
  type: searchChoice("FILE", "PLAN", "SCREENSHOT", "PULL_REQUEST", "EXTERNAL_REFERENCE"),
  q: searchText,
  factory: searchText,
  created_after: searchText,
  created_before: searchText,
  /** Default: `created_at`. */
  sort_by: searchChoice("created_at", "title", "agent"),
  sort_order: searchChoice("asc", "desc"),
  cursor: searchText,
});

export type ArtifactsSearch = v.InferOutput<typeof artifactsSearch>;
