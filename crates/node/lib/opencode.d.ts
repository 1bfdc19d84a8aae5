/** A plugin of opencode. */
export const TrimtabPlugin: (input: any) => Promise<any>;
export default TrimtabPlugin;
