await import("../drill.test.ts");
