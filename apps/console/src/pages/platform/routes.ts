import { createRoute, lazyRouteComponent } from "@tanstack/react-router";
import * as v from "valibot";
import { rootRoute } from "../../app/root-route.tsx";
import { searchChoice, searchText } from "../../ui/search-params.ts";

export const platformRoutes = [
  createRoute({
    getParentRoute: () => rootRoute,
    path: "/workers",
    validateSearch: v.object({ q: searchText }),
    component: lazyRouteComponent(() => import("./workers-page.tsx")),
  }),
  createRoute({
    getParentRoute: () => rootRoute,
    path: "/environments",
    validateSearch: v.object({ q: searchText, sort_by: searchChoice("name", "last_updated") }),
    component: lazyRouteComponent(() => import("./environments-page.tsx")),
  }),
  createRoute({
    getParentRoute: () => rootRoute,
    path: "/environments/$uid",
    staticData: { parents: [{ label: "Environments", to: "/environments" }] },
    component: lazyRouteComponent(() => import("./environment-page.tsx")),
  }),
  createRoute({
    getParentRoute: () => rootRoute,
    path: "/models",
    validateSearch: v.object({
      q: searchText,
      /** Place in the price book of models. */
      cursor: searchText,
      /** Place in the price book of compute. */
      compute_cursor: searchText,
    }),
    component: lazyRouteComponent(() => import("./models-page.tsx")),
  }),
] as const;
