import { createRoute, lazyRouteComponent } from "@tanstack/react-router";
import * as v from "valibot";
import { rootRoute } from "../../app/root-route.tsx";
import { searchList, searchText } from "../../ui/search-params.ts";

const parents = [{ label: "Benchmarks", to: "/benchmarks" }];

export const benchmarksRoutes = [
  createRoute({
    getParentRoute: () => rootRoute,
    path: "/benchmarks",
    validateSearch: v.object({
      /** Uid of the factory. Default: the first one. */
      factory: searchText,
      cursor: searchText,
    }),
    component: lazyRouteComponent(() => import("./benchmarks-page.tsx")),
  }),
  createRoute({
    getParentRoute: () => rootRoute,
    path: "/benchmarks/$factoryUid/$suiteUid",
    validateSearch: v.object({ cursor: searchText }),
    staticData: { parents },
    component: lazyRouteComponent(() => import("./suite-page.tsx")),
  }),
  createRoute({
    getParentRoute: () => rootRoute,
    path: "/benchmarks/$factoryUid/$suiteUid/runs/$runUid",
    validateSearch: v.object({
      /** Filters of the trials. */
      configuration: searchList,
      state: searchList,
      cursor: searchText,
    }),
    staticData: { parents },
    component: lazyRouteComponent(() => import("./benchmark-run-page.tsx")),
  }),
] as const;
