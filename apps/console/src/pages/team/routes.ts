import { createRoute, lazyRouteComponent } from "@tanstack/react-router";
import * as v from "valibot";
import { rootRoute } from "../../app/root-route.tsx";
import { searchText } from "../../ui/search-params.ts";

const listSearch = v.object({ cursor: searchText });

export const teamRoutes = [
  createRoute({
    getParentRoute: () => rootRoute,
    path: "/secrets",
    validateSearch: listSearch,
    component: lazyRouteComponent(() => import("./secrets-page.tsx")),
  }),
  createRoute({
    getParentRoute: () => rootRoute,
    path: "/keys",
    validateSearch: listSearch,
    component: lazyRouteComponent(() => import("./keys-page.tsx")),
  }),
  createRoute({
    getParentRoute: () => rootRoute,
    path: "/members",
    validateSearch: listSearch,
    component: lazyRouteComponent(() => import("./members-page.tsx")),
  }),
  createRoute({
    getParentRoute: () => rootRoute,
    path: "/audit",
    validateSearch: listSearch,
    component: lazyRouteComponent(() => import("./audit-page.tsx")),
  }),
  createRoute({
    getParentRoute: () => rootRoute,
    path: "/settings",
    component: lazyRouteComponent(() => import("./settings-page.tsx")),
  }),
] as const;
