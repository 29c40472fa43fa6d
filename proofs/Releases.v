(* Consequences for releases: conditional means, adaptive transcripts, series of any length. *)
From mathcomp Require Import all_ssreflect all_algebra.
From Quiltwork Require Import Statements Sides TwoSides Levels Chain Certificates.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

(* Adaptive releases. What comes next, its windows and its levels depend on what came out;
   its coins are fresh, so the density of a transcript is a product. *)
Section Transcripts.
Variables (R : realFieldType) (S : finType) (O : Type).
Variables (density : seq O -> O -> seq S -> R) (spent : seq O -> seq (window R)).

Local Notation levels_from := (levels_from spent).
Local Notation transcript_from := (transcript_from density).

Theorem transcript_within T history o :
    (forall h, all (@valid R) (spent h)) ->
    (forall h y, within T (spent h) (density h y)) ->
  all (@valid R) (levels_from history o) /\
  within T (levels_from history o) (transcript_from history o).
Proof.
move=> ok wi; elim: o history => [|y o IH] history /=.
  by split=> //; split=> [s _|s s' _ _]; rewrite ?ler01 // /paid big_nil mul1r.
have [vs [g0 gl]] := IH (rcons history y); have [d0 dl] := wi history y.
split; first by rewrite all_cat ok vs.
split=> [s st|s s' st st']; first by rewrite mulr_ge0 ?d0 ?g0.
rewrite /paid big_cat /= mulrACA.
by apply: ler_pmul; rewrite ?d0 ?g0 ?dl ?gl.
Qed.

End Transcripts.

Section Conditional.
Variables (R : realFieldType) (S : finType).

Lemma ratio_conditional (a b p q c : R) : 0 < p -> 0 < q ->
  a <= c * b -> a / p <= c * (q / p) * (b / q).
Proof.
move=> p0 q0 le; rewrite -mulrA mulf_div [p * q]mulrC -mulf_div divff ?gt_eqF // mul1r.
by rewrite mulrA ler_wpmul2r // invr_ge0 ltW.
Qed.

Variables (m : S -> R) (P : nat -> S -> S -> R).
Hypothesis ch : chain m P.
Variables (T i k : nat) (levels : seq (window R)).
Hypotheses (Tik : T = (i + k.+1)%N) (ok : all (@valid R) levels).
Variable occurs : nat -> pred S.
Hypothesis start_occurs : forall x, ~~ occurs 0 x -> m x = 0.
Hypothesis next_occurs :
  forall t z x, occurs t z -> ~~ occurs t.+1 x -> P t z x = 0.
Variables (FR : nat -> S -> S -> R) (finR : nat -> rel S).
Variables (FL : nat -> S -> S -> R) (finL : nat -> rel S).

(* P(X_i = x) > 0 only for states that occur. *)
Theorem sweep_conditional g x x' :
    recursion (kernel_right P T) (fun=> 1) (fun j _ _ => begins levels T j)
      (begins levels T) (fun=> predT) FR finR ->
    recursion (kernel_left P) m (fun j _ _ => backward levels j) (backward levels)
      occurs FL finL ->
    within T levels g ->
    0 < probability m P T i x -> 0 < probability m P T i x' -> x != x' ->
    finL i x x' -> finR k x x' ->
  conditional_mean m P T i g x
    <= own levels i * FL i x x' * FR k x x' *
       (probability m P T i x' / probability m P T i x) * conditional_mean m P T i g x'.
Proof.
move=> recR recL wi p p' ne fl fr; apply: ratio_conditional => //.
have possible y : 0 < probability m P T i y -> occurs i y.
  apply: contraTT => no.
  have : partial_mean m P T i (fun=> 1) y = 0.
    rewrite (partial_mean_both m P Tik); apply: beyond_impossible no.
    exact: (support_left ch start_occurs next_occurs).
  rewrite /partial_mean; under eq_bigr do rewrite mulr1.
  by rewrite -/(probability m P T i y) => ->; rewrite ltxx.
exact: (sweep ch Tik ok start_occurs next_occurs recR recL wi (possible _ p) (possible _ p')).
Qed.

End Conditional.

(* A chain that begins in a stationary law, of any length; two certificates. *)
Section Endless.
Variables (R : realFieldType) (S : finType) (pi : S -> R) (Q : S -> S -> R).
Hypotheses (pi0 : forall x, 0 <= pi x) (Q0 : forall x z, 0 <= Q x z).
Hypotheses (Q1 : forall x, \sum_z Q x z = 1) (piQ : forall x, \sum_z pi z * Q z x = pi x).

(* What every node spends: on its own, and towards either side. *)
Variables (a b f : R).
Hypotheses (b1 : 1 <= b) (f1 : 1 <= f).
Variables (rR rL : S -> S -> R) (finR finL : rel S).
Hypothesis certR : certificate Q (fun=> 1) (fun _ _ => f) f rR finR.
Hypothesis certL : certificate (fun x z => Q z x) pi (fun _ _ => b) b rL finL.

Let P (t : nat) := Q.

Lemma probability_stationary T i k x : T = (i + k.+1)%N -> probability pi P T i x = pi x.
Proof.
move=> Tik; have -> : probability pi P T i x = partial_mean pi P T i (fun=> 1) x.
  by apply: eq_bigr => s _; rewrite mulr1.
rewrite (partial_mean_both pi P Tik) /both.
have one : beyond (kernel_right P T) (fun=> 1) k x (fun=> 1) = 1 :> R.
  by apply: (@beyond_e R S Q (fun=> 1)) => y; under eq_bigr do rewrite mulr1; exact: Q1.
rewrite one; apply: (@beyond_e R S (fun x z => Q z x) pi) => y.
by under eq_bigr do rewrite mulrC; exact: piQ.
Qed.

Theorem endless (T i k : nat) (levels : seq (window R)) g x x' :
    T = (i + k.+1)%N -> all (@valid R) levels ->
    (forall t, backward levels t <= b) -> (forall t, forward levels t <= f) ->
    own levels i <= a ->
    within T levels g -> 0 < pi x -> 0 < pi x' -> x != x' -> finL x x' -> finR x x' ->
  conditional_mean pi P T i g x
    <= a * (rL x x' * (pi x' / pi x)) * rR x x' * conditional_mean pi P T i g x'.
Proof.
move=> Tik ok lb lf la wi px px' ne fl fr.
have ch : chain pi P by split=> // t; exact: Q0.
have recR : recursion (kernel_right P T) (fun=> 1) (fun j _ _ => begins levels T j)
    (begins levels T) (fun=> predT) (fun=> rR) (fun=> finR).
  have beg j : begins levels T j <= f.
    have [lt|ge] := ltnP j T; last first.
      rewrite /begins big_pred0 // => w; apply/negbTE; rewrite neq_ltn orbC.
      by rewrite (leq_ltn_trans ge) // addnS ltnS leq_addl.
    rewrite (_ : begins levels T j = forward levels (T - j.+1)) //.
    by apply: eq_bigl => w; rewrite -{1}(subnK lt) eqn_add2r.
  apply: (@certificate_recursion R S Q (fun=> 1) (fun j _ _ => begins levels T j)
    (begins levels T) _ _ _ (fun _ _ => f) f _ _ _ rR finR certR) => //.
  - by move=> y; exact: ler01.
  - by move=> y; under eq_bigr do rewrite mulr1.
  - by move=> j; rewrite beg prod_ge0.
have recL : recursion (kernel_left P) pi (fun j _ _ => backward levels j)
    (backward levels) (fun=> predT) (fun=> rL) (fun=> finL).
  apply: (@certificate_recursion R S (fun x z => Q z x) pi (fun j _ _ => backward levels j)
    (backward levels) _ _ _ (fun _ _ => b) b _ _ _ rL finL certL) => //.
  - by move=> y; under eq_bigr do rewrite mulrC.
  - by move=> j; rewrite lb prod_ge0.
have pr y : probability pi P T i y = pi y by exact: probability_stationary Tik.
have := @sweep_conditional _ _ pi P ch T i k levels Tik ok (fun=> predT) _ _
  (fun=> rR) (fun=> finR) (fun=> rL) (fun=> finL) g x x' recR recL wi.
rewrite !pr => /(_ _ _ px px' ne fl fr) bound; apply: le_trans (bound _ _) _ => //.
have c0 : 0 <= conditional_mean pi P T i g x'.
  rewrite /conditional_mean pr divr_ge0 //; apply: sumr_ge0 => s _.
  have [g0 _] := wi; rewrite mulr_ge0 ?g0 ?size_tuple //.
  case: s => -[|y s] _ /=; first exact: ler01.
  rewrite mulr_ge0 //; elim: s y 0%N => [|z s IH] y t /=; first exact: ler01.
  by rewrite mulr_ge0 ?IH ?Q0.
apply: ler_wpmul2r => //; rewrite -!mulrA; apply: ler_pmul => //.
- exact: prod_ge0.
- by rewrite !mulr_ge0 ?(bound_ge0 certL) ?(bound_ge0 certR) ?invr_ge0 ?ltW.
- by rewrite [rR x x' * _]mulrC -mulrA.
Qed.

End Endless.
