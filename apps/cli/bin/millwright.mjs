#!/usr/bin/env node
import { launch } from "@millwright/terminal/launch";

launch("millwright", new URL("../src/main.ts", import.meta.url));
