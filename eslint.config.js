import js from "@eslint/js"
import globals from "globals"

export default [
  { ignores: ["ui/assets/vendor/"] },
  js.configs.recommended,
  {
    files: ["ui/assets/**/*.js", "pages/**/*.js", "docs/site/*.js"],
    languageOptions: { globals: globals.browser },
    rules: {
      "eqeqeq": "error",
      "no-var": "error",
      "prefer-const": ["error", { destructuring: "all" }],
      "no-shadow": "error",
      "no-unused-vars": ["error", { argsIgnorePattern: "^_" }],
      "max-lines": ["error", 400],
      "no-restricted-properties": ["error", { object: "document", property: "write", message: "Text goes through textContent." }],
    },
  },
  { files: ["tests/js/**/*.js"], languageOptions: { globals: globals.node } },
]
